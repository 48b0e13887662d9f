// The windows of a k-NN search on the GPU: for each query the threshold below which a product may be one of its nearest
// rows, from the k-th smallest minimum and the error bound (candidate_window). One thread per query.
#pragma once

#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/operand_bounds.hpp"
#include "kernels/matrix/product_plan.hpp"
#include "kernels/select/select_plan.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// The input and output of windows of any search, for all queries of a batch.
struct WindowTask {
  KeyKind kind = KeyKind::l2;
  OperandType type = OperandType::half;
  int64_t cols = 0;
  int64_t queries = 0;
  const QueryOperand* query_bounds = nullptr;
  const BaseBounds* base_bounds = nullptr;
  float* thresholds = nullptr;     // -inf if there is no bound
  uint32_t* key_limits = nullptr;  // ordered keys: no result has a larger one; 0 if there is no bound
};

struct KnnWindowTask : WindowTask {
  int64_t k = 0;
  const float* kth = nullptr;       // each query's k-th smallest group minimum, or a little more; null: it is among
  const float* minima = nullptr;    // each query's smallest `selected` group minima, sorted
  int64_t selected = 0;             // at least k, if there are as many groups
  int64_t groups = 0;               // number of groups
  uint32_t* row_counts = nullptr;   // zeroed here for the next step's counts; or null
  int32_t* group_counts = nullptr;  // how many of the selected groups can hold a neighbour; -1: nothing is sure, or
                                    // more than those selected can. Null where that does not matter
};

// A cut through every row of an f32 matrix: a value that at least k of the row's do not exceed, and hardly more than k.
//
// For a threshold nobody needs the k values, their places or an order: a block holds a whole row in registers and
// halves the range of values until the count is right, so that time hardly depends on k. One read of the matrix.
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

// Enqueues and returns.
void launch_knn_windows(const KnnWindowTask& task, cudaStream_t stream);

// From all group minima of a batch of queries to their windows, in one launch: the k-th smallest minimum, by halving
// (key_cut.hpp), and its window (kernels/matrix/knn_windows_cuda.hpp).
//
// A warp holds up to 1,024 minima of a query in registers, a block more. One read of the minima; time hardly depends on
// k. For short rows, where two launches and what passes between them would take as long as the work.

// The task's minima are all of each query's, `groups` of them, at most kKthLongestRow, in any order; `selected`, `kth`
// and `group_counts` are not used. Nothing is sure where there are fewer than k. InvalidArgument for rows that are too
// long. Enqueues and returns.
void launch_kth_windows(const KnnWindowTask& task, cudaStream_t stream);

// The windows of a range search on the GPU: for each query the threshold below which a product may be a row in range,
// from the radius and the error bound (range_window). A thread for each query.
struct RangeWindowTask : WindowTask {
  float most = 0;               // the largest key in range: the limit of keys
  const float* each = nullptr;  // per query, if they differ
};
// Enqueues and returns.
void launch_range_windows(const RangeWindowTask& task, cudaStream_t stream);

}  // namespace kith
