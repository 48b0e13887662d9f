// The windows of a range search on the GPU: for each query the threshold below which a product may be a row in range,
// from the radius and the error bound (range_window). A thread for each query.
#pragma once

#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/operand_facts.hpp"
#include "kernels/matrix/product_plan.hpp"

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
// Enqueues and returns.
void launch_range_windows(const RangeWindowTask& task, cudaStream_t stream);

}  // namespace kith
