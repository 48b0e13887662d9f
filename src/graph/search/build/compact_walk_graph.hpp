// Drops places from a graph that is there. The graph stays as it is, and another one is made.
//
// A place goes with the last of its rows. Who pointed at one that goes chooses anew, among its neighbours and theirs;
// then lists are linked both ways and pruned as in a build. (FreshDiskANN offers the neighbours of what goes alone, one
// way; Singh et al., 2021: half of the rows replaced cost up to two points of recall then.) An entry that goes is
// replaced by its nearest neighbour that stays. Then every place is searched for with a small beam, as in
// walk_entries.hpp, and those that are lost get edges, or become entries. Places that stay keep their order.
//
// Time: some hundred keys and a small walk for each place, half to two thirds of a build. Memory: that of both graphs,
// 16 bytes for each edge and 24 a row.
#pragma once

#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "graph/search/graph/walk_graph.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// Whether dropping so many of the graph's rows is better done in place than by building anew: up to half of them. By
// products it is not: the graph is made of other values than its codes.
bool can_compact(const WalkGraph& graph, int64_t dropped);

// `kept`: bits of the graph's rows; those that stay close up. Null where no entry is left.
std::shared_ptr<const WalkGraph> compact_walk_graph(const WalkGraph& graph, const uint64_t* kept,
                                                    const Resources& resources);
// What that takes at most, with the new graph.
Footprint compact_footprint(const WalkGraph& graph, const Resources& resources);

}  // namespace kith
