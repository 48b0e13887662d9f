// Makes the lists of a search graph: prunes candidates, adds edges in the reverse direction, and prunes again.
//
// A place's candidates are pruned to the degree; then the place is offered to those that it chose: offers are grouped
// by target and sorted by (key, source), so that the order in which threads made them does not matter; finally a
// place's choices together with the nearest kMostOffers offers to it are pruned to the degree.
//
// Memory, besides the lists: 8 bytes per edge, twice.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "graph/search/graph/walk_rows.hpp"

#include <cstdint>
#include <functional>

namespace kith {

inline constexpr int64_t kMostOffers = 512;  // that are considered for one place

// Returns rows.count() x degree places, padded with kNoEdge. `candidates`: the nearest others of each place, padded
// with -1, in any order.
HostArray<uint32_t> link_places(const WalkRows& rows, const NeighborsView& candidates, int64_t degree,
                                const Resources& resources);

// Provides a place's candidates: writes distinct other places and returns their number. Called on any thread.
struct PlaceCandidates {
  int64_t most = 0;     // the most that it writes
  int64_t nearest = 0;  // the number of nearest ones considered
  std::function<int64_t(int64_t place, uint32_t* others)> of;
};
HostArray<uint32_t> link_places(const WalkRows& rows, const PlaceCandidates& candidates, int64_t degree,
                                const Resources& resources);

}  // namespace kith
