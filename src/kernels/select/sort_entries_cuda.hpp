// Sorts up to 8 * kThreads different entries in shared memory with one block, with room beside them for as many
// (sort_in_place_cuda.hpp does without).
//
// Each warp sorts a run in registers; then pairs of runs are merged, every entry finding its place by a binary search
// in the other run. O(n log^2(run)) moves and O(n log(runs) log(n)) reads.
#pragma once

#include "kernels/select/sorted_run_cuda.hpp"

#include <cstdint>

namespace kith {

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
