// Whether graphs and rows belong together, before anything is made of them.
#pragma once

#include <kith/graph_merge.hpp>

#include <vector>

namespace kith {

// That the graph is one, on the host, and of these rows: the distances of some edges are computed again.
void check_part(const GraphPart& part, std::string_view what, const Resources& resources);
// That parts can be merged: the same k, metric, dimension and dtype.
void check_same(const GraphPart& a, const GraphPart& b);

}  // namespace kith
