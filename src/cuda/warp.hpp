// Reductions and scans over the lanes of a warp. Results of reductions are in all lanes.
#pragma once

#include "cuda/device_core.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

inline constexpr unsigned kAllLanes = 0xFFFFFFFFu;

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x) % 32; }

// The sum of kLanes neighbouring lanes, a power of two, added as in canonical_tree(). `lanes` are those that call it.
template <int kLanes = 32, typename T>
__device__ inline T warp_sum(T value, unsigned lanes = kAllLanes) {
  KITH_UNROLL
  for (int apart = kLanes / 2; apart > 0; apart /= 2) value += __shfl_xor_sync(lanes, value, apart);
  return value;
}
__device__ inline float warp_largest(float value) {
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, apart));
  return value;
}
__device__ inline uint64_t warp_least(uint64_t value) {
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) {
    const uint64_t other = __shfl_xor_sync(kAllLanes, value, apart);
    value = other < value ? other : value;
  }
  return value;
}

// The sum of the lanes up to this one.
template <typename T>
__device__ inline T warp_inclusive(T value) {
  KITH_UNROLL
  for (int apart = 1; apart < 32; apart *= 2) {
    const T other = __shfl_up_sync(kAllLanes, value, static_cast<unsigned>(apart));
    if (lane_index() >= apart) value += other;
  }
  return value;
}

}  // namespace kith
