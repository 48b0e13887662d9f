// Range search on the GPU: thresholds of products from a radius, and the rows within it from tiles of keys.
#pragma once

#include "kernels/product/rerank_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct RangeWindowTask {
  KeyKind kind = KeyKind::l2;
  OperandType type = OperandType::half;
  int64_t cols = 0;
  int64_t queries = 0;
  float most = 0;  // the largest key in range
  const QueryFacts* query_facts = nullptr;
  const BaseFacts* base_facts = nullptr;
  float* thresholds = nullptr;     // -inf where nothing is sure
  uint32_t* key_limits = nullptr;  // `most` as an ordered key, or 0 where nothing is sure
};
// Enqueue and return.
void launch_range_windows(const RangeWindowTask& task, cudaStream_t stream);

// Of a tile of ordered keys, all up to `limit`, in no order; queries that have been delivered before are left as they
// are.
struct RangeTileTask {
  const uint32_t* keys = nullptr;
  int64_t stride = 0;
  int64_t queries = 0;
  int64_t rows = 0;
  uint32_t first_row = 0;
  const uint32_t* numbers = nullptr;  // of the rows, where they are not first_row, first_row + 1, ...
  uint32_t limit = 0;
  RangeTarget target;
};
void launch_range_tile(const RangeTileTask& task, cudaStream_t stream);

}  // namespace kith
