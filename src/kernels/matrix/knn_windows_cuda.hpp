// The windows of a k-NN search on the GPU: for each query the threshold below which a product may be one of its nearest
// rows, from the k-th smallest minimum and the error bound (candidate_window). A thread for each query.
#pragma once

#include "kernels/matrix/knn_window_task.hpp"

#include <cuda_runtime_api.h>

namespace kith {

// Enqueues and returns.
void launch_knn_windows(const KnnWindowTask& task, cudaStream_t stream);

}  // namespace kith
