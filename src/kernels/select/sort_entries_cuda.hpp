// Sorts up to 8 * kThreads different entries in shared memory with one block.
//
// Each warp sorts a run in registers with the odd-size network; then pairs of runs are merged, every entry finding its
// place by a binary search in the other run. O(n log^2(run)) moves and O(n log(runs) log(n)) reads.
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

// Each warp sorts runs of 32 * kRegisters entries in turn.
template <int kRegisters>
__device__ inline void sort_runs(uint64_t* list, int count) {
  constexpr int kRun = 32 * kRegisters;
  const int step = static_cast<int>(blockDim.x) / 32 * kRun;
  for (int start = static_cast<int>(threadIdx.x) / 32 * kRun; start < count; start += step) {
    sort_run<kRegisters>(list, start, count);
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

template <int kThreads>
__device__ inline void merge_runs(const uint64_t* from, uint64_t* to, int run_bits, int count) {
  const int run = 1 << run_bits;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const int mine = i >> run_bits;
    const int other = (mine ^ 1) << run_bits;
    const int length = min(max(count - other, 0), run);
    const uint64_t entry = from[i];
    to[min(mine << run_bits, other) + (i & (run - 1)) + rank_in_run(from + other, length, entry)] = entry;
  }
}

// Returns which of the two arrays holds the result; both have room for `count`. Every thread of the block calls it,
// after a barrier; there is one at the end.
template <int kThreads>
__device__ inline uint64_t* sort_entries(uint64_t* list, uint64_t* spare, int count) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  int run_bits = 5;
  while ((kThreads / 32) << run_bits < count) ++run_bits;
  switch (run_bits) {
    case 5: sort_run<1>(list, 32 * warp, count); break;
    case 6: sort_run<2>(list, 64 * warp, count); break;
    case 7: sort_run<4>(list, 128 * warp, count); break;
    default: sort_run<8>(list, 256 * warp, count); break;
  }
  __syncthreads();
  for (; 1 << run_bits < count; ++run_bits) {
    merge_runs<kThreads>(list, spare, run_bits, count);
    uint64_t* const merged = spare;
    spare = list;
    list = merged;
    __syncthreads();
  }
  return list;
}

}  // namespace kith
