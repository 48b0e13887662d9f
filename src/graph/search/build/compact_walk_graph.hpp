// Removes places from an existing graph. The graph is not changed; a new one is made.
//
// A place is removed with the last of its rows. Places with edges to removed ones choose new neighbours, among their
// neighbours and those of the removed; then lists are linked both ways and pruned as in a build. (FreshDiskANN, Singh
// et al., 2021, only offers the removed places' neighbours, one way: replacing half of the rows then cost up to two
// points of recall.) A removed entry is replaced by its nearest remaining neighbour. Then every place is searched for
// with a small beam, as in walk_entries.hpp; lost ones get edges or become entries. Remaining places keep their order.
//
// Time: a few hundred keys and a small walk for each place, half to two thirds of a build. Memory: that of both graphs,
// 16 bytes per edge and 24 per row.
#pragma once

#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "graph/search/graph/walk_graph.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// Whether removing that many of the graph's rows this way is better than a new build: up to half of them. Not for inner
// products, whose graph is built from other values than its codes.
bool can_compact(const WalkGraph& graph, int64_t dropped);

// `kept`: a bit for each of the graph's rows; kept rows are renumbered consecutively. Null if no entry is left.
std::shared_ptr<const WalkGraph> compact_walk_graph(const WalkGraph& graph, const uint64_t* kept,
                                                    const Resources& resources);
// The most memory that this takes, including the new graph.
Footprint compact_footprint(const WalkGraph& graph, const Resources& resources);

}  // namespace kith
