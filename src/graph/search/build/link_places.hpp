// The lists of a walked graph: candidates pruned, edges taken both ways, and pruned again.
//
// A place's candidates are pruned to the degree; then everyone is offered to those it has chosen: edges are put
// together by target, each target's sorted by (key, source), so that the order in which threads found them does not
// matter; and what a place has chosen with what was offered to it, the nearest kMostOffers, is pruned to the degree.
//
// Memory, beside the lists: 8 bytes for each edge, twice.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "graph/search/graph/walk_rows.hpp"

#include <cstdint>
#include <functional>

namespace kith {

inline constexpr int64_t kMostOffers = 512;  // that are looked at for one place

// rows.count() x degree places, kNoEdge behind the last of each. `candidates`: the nearest others of each place, -1
// where there are no more; of pruning they need not be in order.
HostArray<uint32_t> link_places(const WalkRows& rows, const NeighborsView& candidates, int64_t degree,
                                const Resources& resources);

// Where a place's candidates come from: writes others, none twice, and returns how many they are. On any thread.
struct PlaceCandidates {
  int64_t most = 0;     // that it writes
  int64_t nearest = 0;  // of which so many are looked at
  std::function<int64_t(int64_t place, uint32_t* others)> of;
};
HostArray<uint32_t> link_places(const WalkRows& rows, const PlaceCandidates& candidates, int64_t degree,
                                const Resources& resources);

}  // namespace kith
