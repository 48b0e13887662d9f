// A run of different entries in a block's memory that one warp sorts in its registers, with the odd-size network, and
// an entry's rank in such a run, by which runs are merged. O(n log^2 n) moves, O(log n) reads for a rank.
#pragma once

#include "kernels/select/device_warp_cuda.hpp"
#include "kernels/select/lane_array.hpp"

#include <cstdint>

namespace kith {

// A warp sorts the 32 * kRegisters entries from `start` on, or as many as there are of `count`.
template <int kRegisters>
__device__ inline void sort_run(uint64_t* list, int start, int count) {
  if (start >= count) return;
  const int first = start + lane_index();
  uint64_t entries[kRegisters];
  KITH_UNROLL
  for (int i = 0; i < kRegisters; ++i) entries[i] = first + 32 * i < count ? list[first + 32 * i] : kPadding;
  run_schedule<DeviceWarp<uint64_t>, SortSchedule<kRegisters>>(entries);
  KITH_UNROLL
  for (int i = 0; i < kRegisters; ++i) {
    if (first + 32 * i < count) list[first + 32 * i] = entries[i];
  }
}

// How many of the sorted list[0 .. length) are smaller.
__device__ inline int rank_in_run(const uint64_t* list, int length, uint64_t entry) {
  int low = 0;
  int high = length;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (list[middle] < entry) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace kith
