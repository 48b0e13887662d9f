// Launches the steps of link_places() on a GPU: a warp prunes the candidates of a place (prune.hpp), its choices become
// offers to those it has chosen, put together by target in any order, and a warp prunes what a place has chosen with
// the nearest of its offers. The same lists as on the CPU, since (key, place) orders them all.
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
  const int64_t* candidates = nullptr;  // places x candidate_count, -1 where there are no more
  int64_t candidate_count = 0;
  int64_t degree = 0;
  PruneRatio ratio;
  uint32_t* edges = nullptr;  // places x degree
};

struct LinkLayoutCuda : WorkspaceLayout {
  LinkLayoutCuda(int64_t places, int64_t degree);

  Slot<uint64_t> chosen;   // places x degree, kPadding behind the last
  Slot<uint64_t> offered;  // by target
  Slot<int64_t> ends;      // of each target's offers; first: where they begin
  Slot<uint32_t> counts;   // of them
  Slot<std::byte> scan;
};

// Enqueues.
void launch_link_places(const LinkTaskCuda& task, const LinkLayoutCuda& layout, std::byte* memory, cudaStream_t stream);

}  // namespace kith
