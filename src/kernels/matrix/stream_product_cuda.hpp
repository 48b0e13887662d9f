// Products of few queries with rows as they are stored: one read of the rows, which are rounded to halves on their way
// to the matrix units and never written as such.
//
// Where queries are few, making operands of a base takes longer than multiplying them; and all values, one f32 for each
// query and row, are few enough to be written, so that the rows below any threshold can be told from them without a
// second product. A warp has 16 rows and all queries; the queries' operands come through shared memory. Time is that of
// reading the rows, as long as these have some hundred columns, and of rounding and multiplying where queries are many.
#pragma once

#include "kernels/matrix/operands_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

struct StreamProductTask {
  OperandTask base;                    // of halves, after launch_sample; its operands are not used
  const std::byte* queries = nullptr;  // their operands
  int64_t query_count = 0;             // at most kStreamMostQueries
  float* values = nullptr;             // queries x stride: term + product of each row (product_cuda.hpp)
  int64_t stride = 0;
  uint32_t* first_bad = nullptr;  // the smallest row that is not finite, if not null
  int multiprocessors = 0;
  ProductEngine engine = ProductEngine::mma;
};

// Adds to the base's bounds. InvalidArgument for rows of another dtype. Enqueues and returns.
void launch_stream_product(const StreamProductTask& task, cudaStream_t stream);
// Its part for Hopper GPUs.
void launch_stream_wgmma(const StreamProductTask& task, cudaStream_t stream);

}  // namespace kith
