// How a block takes places for what it has found of one query (RangeTarget).
#pragma once

#include "kernels/rerank/rerank_task.hpp"

#include <cstdint>

namespace kith {

struct RangePlaces {  // in shared memory
  uint32_t start;
  bool taken;
};

// All threads of the block call it. False where there is no room.
__device__ inline bool take_places(const RangeTarget& target, int64_t query, uint32_t count, RangePlaces& places) {
  if (threadIdx.x == 0) {
    places.start = atomicAdd(target.total, count);
    places.taken = places.start <= target.capacity && count <= target.capacity - places.start;
    if (places.taken) {
      target.starts[query] = places.start;
      target.counts[query] = count;
    }
  }
  __syncthreads();
  return places.taken;
}

}  // namespace kith
