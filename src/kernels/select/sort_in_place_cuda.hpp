// Sorts different entries in shared memory with one block, without memory beside them: for lists that fill it.
//
// A long list's runs are sorted in registers first, a warp for each in turn; the bitonic network of sort_block_cuda.hpp
// goes on from there. That spares it, and the barriers, 36 of its passes over the list.
#pragma once

#include "kernels/select/device_warp_cuda.hpp"
#include "kernels/select/lane_array.hpp"
#include "kernels/select/sort_block_cuda.hpp"

#include <cstdint>

namespace kith {

// A run of different entries in a block's memory that one warp sorts in its registers, with the odd-size network: O(n
// log^2 n) moves. Runs are merged by the ranks of their entries (select_entry.hpp).

// A warp sorts the 32 * kRegisters entries from `start` on, or those before `count` if there are fewer.
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

// The block as it was launched.
struct LaunchedBlock {
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ void sync() const { __syncthreads(); }
};

// Every thread of the block, which has whole warps, calls it, after a barrier, and finds the list sorted afterwards.
__device__ inline void sort_in_place(uint64_t* list, int count) {
  constexpr int kRunRegisters = 8;
  constexpr int kRun = 32 * kRunRegisters;
  static_assert((kRun & (kRun - 1)) == 0, "the bitonic network merges runs of powers of two");
  LaunchedBlock block;
  if (count > kRun) {
    const int step = block.threads() / 32 * kRun;
    for (int start = block.thread() / 32 * kRun; start < count; start += step) {
      sort_run<kRunRegisters>(list, start, count);
    }
    block.sync();
  }
  sort_block(block, list, count, count > kRun ? kRun : 1);
}

}  // namespace kith
