// Links new rows into an existing graph. The graph is not changed; a new one is made, which shares unchanged parts with
// it: codes and rows are appended, and lists are copied by page (walk_lists.hpp).
//
// Each new row is searched for in the graph; the places found and its nearest among the new rows are its candidates.
// They are pruned, and the row is offered to every place chosen, sorted by (place, key, row): a list with room takes
// the offers, others are pruned. So the result does not depend on threads. New places that a short walk does not find
// get edges as in walk_entries.hpp. Rows with the code of an existing place are added to it.
//
// Time: a walk and a few hundred keys for each new row, and a copy of the pages of changed lists; if rows are added to
// existing places, a pass over all rows. Memory: at most that of both graphs.
#pragma once

#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "graph/search/graph/walk_arrays_gpu.hpp"
#include "graph/search/graph/walk_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kith {

// Whether linking that many new rows is better than a new build. Not for inner products, whose graph is built from
// other values than its codes.
bool can_extend(const WalkGraph& graph, int64_t rows);

// `codes`: of the new rows, made by the graph's coder; `clipped`: how many of their values were clipped. `arrays`: those
// of the graph if a GPU has them; then those of the new graph, if that GPU has linked it.
std::shared_ptr<const WalkGraph> extend_walk_graph(const WalkGraph& graph, const std::byte* codes, int64_t rows,
                                                   int64_t clipped, uint64_t seed, const Resources& resources,
                                                   WalkArraysOnGpu* arrays = nullptr);
// The most memory that this takes, including the new graph.
Footprint extend_footprint(const WalkGraph& graph, int64_t rows, const Resources& resources);

}  // namespace kith
