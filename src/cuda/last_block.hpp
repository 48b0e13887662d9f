// The block of several that is done last: it sees what the others have written, and brings it together.
#pragma once

#include "cuda/device_core.hpp"

#include <cstdint>

namespace kith {

// Every thread of a block calls it, once what it has for the last block is written. `arrived` counts the blocks on the
// device, and is `before_last` where all but one have come. True in all threads of the last one.
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
