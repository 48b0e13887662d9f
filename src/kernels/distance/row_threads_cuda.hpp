// Four neighbouring threads that share a row and compute four neighbouring lanes of its canonical sum each; and what
// all lanes of a warp come to together.
#pragma once

#include "cuda/device_core.hpp"
#include "kernels/distance/canonical.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

inline constexpr int kRowThreads = 4;
inline constexpr int kRowThreadLanes = kCanonicalLanes / kRowThreads;

// The bits of the calling thread and of those that share its row, in their warp.
__device__ inline unsigned row_threads() { return 0xFu << (threadIdx.x % 32 / kRowThreads * kRowThreads); }

// canonical_tree of their lanes, right in the first of them: eight and four lanes apart are other threads'.
__device__ inline double join_row_threads(double (&lanes)[kRowThreadLanes], unsigned threads) {
  KITH_UNROLL
  for (int apart = kRowThreads / 2; apart > 0; apart /= 2) {
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) {
      lanes[i] += __shfl_down_sync(threads, lanes[i], static_cast<unsigned>(apart), kRowThreads);
    }
  }
  lanes[0] += lanes[2];
  lanes[1] += lanes[3];
  return lanes[0] + lanes[1];
}

// Of every lane of a warp, in all of them: the sum, the largest of floats, and the least.
template <typename T>
__device__ inline T warp_sum(T value) {
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, apart);
  return value;
}
__device__ inline float warp_largest(float value) {
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, apart));
  return value;
}
__device__ inline uint64_t warp_least(uint64_t value) {
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) {
    const uint64_t other = __shfl_xor_sync(0xFFFFFFFFu, value, apart);
    value = other < value ? other : value;
  }
  return value;
}

// The sum of the lanes up to this one.
template <typename T>
__device__ inline T warp_inclusive(T value) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  KITH_UNROLL
  for (int apart = 1; apart < 32; apart *= 2) {
    const T other = __shfl_up_sync(0xFFFFFFFFu, value, static_cast<unsigned>(apart));
    if (lane >= apart) value += other;
  }
  return value;
}

}  // namespace kith
