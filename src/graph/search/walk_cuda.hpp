// Launches walks on a GPU: one launch for all queries of a batch, a block for each.
#pragma once

#include "graph/search/walk_task_cuda.hpp"
#include "kernels/rerank/few_results_cuda.hpp"

#include <cuda_runtime_api.h>

namespace kith {

// Enqueues. Chooses seen and layout. `given` holds the queries where they go with the launch.
void launch_walks(WalkTaskCuda task, const InlineQueries& given, int multiprocessors, cudaStream_t stream);

}  // namespace kith
