// Launches the steps of link_places() on a GPU, and those of linking new places into existing lists
// (extend_walk_graph.hpp): a warp prunes the candidates of a place (prune.hpp), the place is offered to those that it
// chose, offers are grouped by target in any order, and a warp prunes a place's choices, or its list, together with the
// nearest of its offers. The lists are the same as on the CPU, since everything is ordered by (key, place).
//
// Memory: 8 bytes per edge, twice, and 16 per place.
#pragma once

#include "cuda/workspace_layout.hpp"
#include "graph/lists/pairs/pair_key_rows.hpp"
#include "graph/search/build/link_places.hpp"
#include "graph/search/build/prune_rule.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct LinkTaskCuda {
  // The vectors of the places: codes, compared by squares; or rows, by canonical keys.
  const int8_t* codes = nullptr;
  int64_t stride = 0;  // bytes per code
  PairKeyRows rows;
  int64_t places = 0;
  int64_t first = 0;                    // only places from this one on have candidates
  const int64_t* candidates = nullptr;  // candidate_count for each of these, padded with -1
  int64_t candidate_count = 0;
  int64_t degree = 0;
  PruneRatio ratio;
  uint32_t* edges = nullptr;  // places x degree
};

struct LinkLayoutCuda : WorkspaceLayout {
  // `choosers`: the number of places with candidates.
  LinkLayoutCuda(int64_t places, int64_t choosers, int64_t degree);

  Slot<uint64_t> chosen;   // choosers x degree, padded with kPadding
  Slot<uint64_t> offered;  // grouped by target
  Slot<int64_t> ends;      // end of each target's offers; initially their begin
  Slot<uint32_t> counts;   // number of each target's offers
  Slot<std::byte> scan;
};

// Enqueues. All places must have candidates.
void launch_link_places(const LinkTaskCuda& task, const LinkLayoutCuda& layout, std::byte* memory, cudaStream_t stream);

// Enqueues. Places before task.first have edges: a list with room takes the nearest kMostOffers places that chose its
// place, other lists are pruned. Compares codes.
void launch_link_more(const LinkTaskCuda& task, const LinkLayoutCuda& layout, std::byte* memory, cudaStream_t stream);

// Enqueues, after launch_link_more(): the places from task.first on and those with offers, whose lists it may have
// changed, in any order, at most choosers x (degree + 1); *count, which must be 0, counts them.
void launch_changed_places(const LinkTaskCuda& task, const LinkLayoutCuda& layout, std::byte* memory, uint32_t* changed,
                           uint32_t* count, cudaStream_t stream);
// Enqueues: the lists of some places, one after the other.
void launch_gather_edges(const LinkTaskCuda& task, const uint32_t* some, int64_t count, uint32_t* lists,
                         cudaStream_t stream);

}  // namespace kith
