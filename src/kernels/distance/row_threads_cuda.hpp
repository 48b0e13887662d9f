// Four neighbouring threads that share a row and compute four neighbouring lanes of its canonical sum each.
#pragma once

#include "cuda/device_core.hpp"
#include "kernels/distance/canonical.hpp"

namespace kith {

inline constexpr int kRowThreads = 4;
inline constexpr int kRowThreadLanes = kCanonicalLanes / kRowThreads;

// Warp mask of the threads that share the calling thread's row.
__device__ inline unsigned row_threads() { return 0xFu << (threadIdx.x % 32 / kRowThreads * kRowThreads); }

// canonical_tree over these threads' lanes; the result is valid in the first of them.
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

}  // namespace kith
