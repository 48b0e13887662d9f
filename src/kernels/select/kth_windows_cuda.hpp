// From all group minima of a batch of queries to their windows, in one launch: the k-th smallest minimum, by halving
// (key_cut.hpp), and its window (kernels/matrix/knn_windows_cuda.hpp).
//
// A warp holds up to 1,024 minima of a query in registers, a block more. One read of the minima; time hardly depends on
// k. For short rows, where two launches and what passes between them would take as long as the work.
#pragma once

#include "kernels/matrix/knn_window_task.hpp"
#include "kernels/select/select_plan.hpp"

#include <cuda_runtime_api.h>

namespace kith {

// The task's minima are all of each query's, `groups` of them, at most kKthLongestRow, in any order; `selected`, `kth`
// and `group_counts` are not used. Nothing is sure where there are fewer than k. InvalidArgument for rows that are too
// long. Enqueues and returns.
void launch_kth_windows(const KnnWindowTask& task, cudaStream_t stream);

}  // namespace kith
