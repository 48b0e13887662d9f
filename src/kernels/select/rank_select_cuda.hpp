// Selection among few values by one block, by counting for each how many are smaller. The code is short, which matters
// when the last block of a kernel runs it once: an unrolled sorting network would take longer to fetch than to
// run.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/select/sort_in_place_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kRankThreads = 256;  // threads of the block

// The k-th smallest of one key of each thread, 1 <= k <= kRankThreads. `room` is shared memory for that many keys and
// one more, at a multiple of 16 bytes. Every thread of the block calls it.
__device__ inline uint32_t kth_of_block(uint32_t key, int k, uint32_t* room) {
  __syncthreads();
  room[threadIdx.x] = key;
  __syncthreads();
  int smaller = 0;
  int equal = 0;
  const auto* const fours = vectors<uint4>(room);
#pragma unroll 4
  for (int i = 0; i < kRankThreads / 4; ++i) {
    const uint4 other = fours[i];
    smaller += (other.x < key) + (other.y < key) + (other.z < key) + (other.w < key);
    equal += (other.x == key) + (other.y == key) + (other.z == key) + (other.w == key);
  }
  if (smaller < k && k <= smaller + equal) room[kRankThreads] = key;  // all writers write the same value
  __syncthreads();
  return room[kRankThreads];
}

static __device__ __noinline__ void sort_long_list(uint64_t* list, int count) { sort_in_place(list, count); }

// Sorts distinct entries in shared memory. Called by every thread of the block, after a barrier.
__device__ inline void sort_by_rank(uint64_t* list, int count) {
  if (count > kRankThreads) return sort_long_list(list, count);
  const auto thread = static_cast<int>(threadIdx.x);
  const uint64_t mine = thread < count ? list[thread] : 0;
  int rank = 0;
#pragma unroll 4
  for (int i = 0; i < count; ++i) rank += list[i] < mine ? 1 : 0;
  __syncthreads();
  if (thread < count) list[rank] = mine;
  __syncthreads();
}

}  // namespace kith
