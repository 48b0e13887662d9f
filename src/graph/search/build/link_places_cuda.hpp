// Launches the steps of link_places() on a GPU, and those of linking new places into lists that are there
// (extend_walk_graph.hpp): a warp prunes the candidates of a place (prune.hpp), its choices become offers to those it
// has chosen, put together by target in any order, and a warp prunes what a place has chosen, or its list has, with the
// nearest of its offers. The same lists as on the CPU, since (key, place) orders them all.
//
// Memory: 8 bytes for each edge, twice, and 16 a place.
#pragma once

#include "cuda/workspace_layout.hpp"
#include "graph/lists/pairs/pair_key_rows.hpp"
#include "graph/search/build/link_places.hpp"
#include "graph/search/build/prune_rule.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct LinkTaskCuda {
  // The places: codes by squares, or else rows by canonical keys.
  const int8_t* codes = nullptr;
  int64_t stride = 0;  // bytes of a code
  PairKeyRows rows;
  int64_t places = 0;
  int64_t first = 0;                    // places from this one on have candidates
  const int64_t* candidates = nullptr;  // of each of these, candidate_count, -1 where there are no more
  int64_t candidate_count = 0;
  int64_t degree = 0;
  PruneRatio ratio;
  uint32_t* edges = nullptr;  // places x degree
};

struct LinkLayoutCuda : WorkspaceLayout {
  // `choosers`: places that have candidates.
  LinkLayoutCuda(int64_t places, int64_t choosers, int64_t degree);

  Slot<uint64_t> chosen;   // choosers x degree, kPadding behind the last
  Slot<uint64_t> offered;  // by target
  Slot<int64_t> ends;      // of each target's offers; first: where they begin
  Slot<uint32_t> counts;   // of them
  Slot<std::byte> scan;
};

// Enqueues. All places have candidates.
void launch_link_places(const LinkTaskCuda& task, const LinkLayoutCuda& layout, std::byte* memory, cudaStream_t stream);

// Enqueues. Edges of the places before task.first are there: a list with room takes the nearest kMostOffers places that
// have chosen its place, others are pruned. By codes.
void launch_link_more(const LinkTaskCuda& task, const LinkLayoutCuda& layout, std::byte* memory, cudaStream_t stream);

}  // namespace kith
