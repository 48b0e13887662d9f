// The loop over rows that kernels for one to four queries share: four threads compute a row's canonical sums, with the
// queries in shared memory, and blocks take rows until none are left. Time is that of reading the rows once.
#pragma once

#include "cuda/device_core.hpp"
#include "kernels/distance/distance_task.hpp"
#include "kernels/distance/row_sum_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kFewThreads = 256;                           // threads per block
inline constexpr int kFewRowsAtOnce = kFewThreads / kRowThreads;  // rows per block

inline int64_t few_shared_bytes(int64_t queries, int64_t cols) {
  return queries * padded_cols(cols) * static_cast<int64_t>(sizeof(double));
}

// Calls use(row, sums) in the first of the four threads of every row that this block takes. `queries` are widened.
template <bool kProduct, int kQueries, typename X, int kAhead = 4, typename Use>
__device__ inline void for_each_few_sums(const DistanceTask& task, const double* queries, const Use& use) {
  const bool unit = task.kind == KeyKind::cosine;
  const bool aligned = rows_aligned(static_cast<const X*>(task.rows.data), task.rows.stride);
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kFewRowsAtOnce + threadIdx.x / kRowThreads;
       row < task.rows.count; row += static_cast<int64_t>(gridDim.x) * kFewRowsAtOnce) {
    double sums[kQueries];
    row_sums<kProduct, kQueries, kAhead>(queries, task.rows.row<X>(row), task.cols, aligned,
                                 unit ? task.rows.inverse_norms[row] : 1.0, sums);
    if (threadIdx.x % kRowThreads != 0) continue;
    use(row, sums);
    // The squares, and the products, of what is finite are too, in double precision.
    if (task.first_bad != nullptr && !(sums[0] - sums[0] == 0.0)) {
      atomicMin(task.first_bad, static_cast<uint32_t>(row));
    }
  }
}

}  // namespace kith
