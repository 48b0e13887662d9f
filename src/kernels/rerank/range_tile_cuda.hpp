// The rows in range of a tile of keys on the GPU, as the direct engine computes them: packed and put one after the
// other (RangeTarget), each query's in no order. A block for each query reads its keys twice, to count and to write.
#pragma once

#include "kernels/rerank/range_target.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// All up to `limit`; queries that have been delivered before are left as they are.
struct RangeTileTask {
  const uint32_t* keys = nullptr;  // ordered, queries x rows
  int64_t stride = 0;
  int64_t queries = 0;
  int64_t rows = 0;
  uint32_t first_row = 0;
  const uint32_t* numbers = nullptr;  // of the rows, where they are not first_row, first_row + 1, ...
  uint32_t limit = 0;
  RangeTarget target;
};
// Enqueues and returns.
void launch_range_tile(const RangeTileTask& task, cudaStream_t stream);

}  // namespace kith
