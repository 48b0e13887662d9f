// Whether ids can be the neighbours of a graph's rows: what every graph from outside is asked before it is read.
//
// An id is a row of the graph, not the row itself, and not there twice; -1, for nobody, stands at the end alone.
// Cost: a sort of each row's ids, in parallel.
#pragma once

#include <kith/resources.hpp>

#include <cstdint>

namespace kith {

// Throws InvalidArgument that names the first wrong row. `ids` are rows x k, on the host.
void check_graph_ids(const int64_t* ids, int64_t rows, int64_t k, const Resources& resources);

}  // namespace kith
