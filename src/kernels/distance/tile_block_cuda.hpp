// The block that runs a tile's core in a kernel.
#pragma once

#include "cuda/device_core.hpp"

namespace kith {

struct TileBlock {
  __device__ __forceinline__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ __forceinline__ void sync() const { __syncthreads(); }
  template <int kCount>
  __device__ __forceinline__ void exchange(double (&values)[kCount], int apart) const {
    KITH_UNROLL
    for (int i = 0; i < kCount; ++i) values[i] = __shfl_xor_sync(0xFFFFFFFFu, values[i], apart);
  }
};

}  // namespace kith
