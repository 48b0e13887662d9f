// A cut through every row of an f32 matrix on the GPU: a value that at least k of the row's do not exceed, and hardly
// more than k.
//
// For a threshold nobody needs the k values, their places or an order: a block holds a whole row in registers and
// halves the range of values until the count is right, so that time hardly depends on k. One read of the matrix.
#pragma once

#include "kernels/select/select_plan.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct KthTask {
  const float* values = nullptr;  // rows x cols
  int64_t rows = 0;
  int64_t cols = 0;      // at most kKthLongestRow
  int64_t k = 0;         // at least 1
  float* kth = nullptr;  // rows: k to k + k / 64 of a row's values do not exceed it, or more where they are equal; +inf
                         // where there are fewer than k, NaNs not counted
};

// InvalidArgument for rows that are too long. Enqueues and returns.
void launch_kth_value(const KthTask& task, cudaStream_t stream);

}  // namespace kith
