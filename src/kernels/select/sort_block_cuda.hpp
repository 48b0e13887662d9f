// The core of the final sort: one block sorts one list in place with a bitonic network.
//
// Every comparator puts the smaller value at the lower place (the first step of a merge pairs mirrored places), so a
// list of any length sorts as if padded with largest values that never move: pairs that reach past the end are skipped.
// n log^2 n comparisons, no memory.
#pragma once

#include "cuda/device_core.hpp"

#include <cstdint>

namespace kith {

KITH_DEVICE inline void order_pair(uint64_t* list, int64_t count, int64_t low, int64_t high) {
  if (high >= count || list[low] <= list[high]) return;
  const uint64_t larger = list[low];
  list[low] = list[high];
  list[high] = larger;
}

// `Block` gives thread(), threads() and sync(). Every run of `sorted` places, a power of two, is sorted already.
template <typename Block>
KITH_DEVICE inline void sort_block(Block& block, uint64_t* list, int64_t count, int64_t sorted = 1) {
  int64_t pairs = 1;
  while (2 * pairs < count) pairs *= 2;
  for (int64_t half = sorted; half < count; half *= 2) {
    // Two sorted runs of `half` become one: mirrored pairs first, then ever closer ones.
    for (int64_t pair = block.thread(); pair < pairs; pair += block.threads()) {
      const int64_t offset = pair & (half - 1);
      const int64_t run = 2 * (pair - offset);
      order_pair(list, count, run + offset, run + 2 * half - 1 - offset);
    }
    block.sync();
    for (int64_t apart = half / 2; apart > 0; apart /= 2) {
      for (int64_t pair = block.thread(); pair < pairs; pair += block.threads()) {
        const int64_t offset = pair & (apart - 1);
        const int64_t low = 2 * (pair - offset) + offset;
        order_pair(list, count, low, low + apart);
      }
      block.sync();
    }
  }
}

}  // namespace kith
