// Links rows into a graph that is there. The graph stays as it is, and another one is made, which shares with it what
// has not changed: codes and rows are appended, and lists copied by the page (walk_lists.hpp).
//
// Each new row is searched for in the graph; those places and its nearest among the new rows are its candidates. They
// are pruned, and every place that was chosen is offered who chose it, sorted by (place, key, who): a list with room
// takes them, others are pruned. So threads do not matter. New places that a short walk does not find get edges as in
// walk_entries.hpp. Rows with the code of a place that is there join it.
//
// Time: a walk and some hundred keys for each new row, and a copy of the lists that change with their pages; where rows
// join places that are there, a pass over all rows. Memory: that of both graphs at most.
#pragma once

#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "graph/search/graph/walk_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kith {

// Whether so many rows behind the graph's are better linked than all built anew. By products they are not: the graph is
// made of other values than its codes.
bool can_extend(const WalkGraph& graph, int64_t rows);

// `codes`: of the rows behind the graph's, as its coder makes them; `clipped`: of their values.
std::shared_ptr<const WalkGraph> extend_walk_graph(const WalkGraph& graph, const std::byte* codes, int64_t rows,
                                                   int64_t clipped, uint64_t seed, const Resources& resources);
// What that takes at most, with the new graph.
Footprint extend_footprint(const WalkGraph& graph, int64_t rows, const Resources& resources);

}  // namespace kith
