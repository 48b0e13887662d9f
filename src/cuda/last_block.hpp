// Finds the block of a grid that finishes last: it sees what the others have written, and combines it.
#pragma once

#include "cuda/device_core.hpp"

#include <cstdint>

namespace kith {

// Called by every thread of a block after writing its part. `arrived`, on the device, counts the finished blocks; it is
// `before_last` when all but one have finished. True in all threads of the last block.
__device__ inline bool arrives_last(uint32_t* arrived, uint32_t before_last) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(arrived, 1u) == before_last;
  __syncthreads();
  if (!last) return false;
  __threadfence();
  return true;
}

}  // namespace kith
