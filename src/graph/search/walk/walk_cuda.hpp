// Launches walks on a GPU: one launch for all queries of a batch, a block for each.
#pragma once

#include "graph/search/walk/walk_task_cuda.hpp"
#include "kernels/rerank/few_results_cuda.hpp"

#include <cuda_runtime_api.h>

namespace kith {

// Enqueues. Chooses seen and layout; fills task.near_cells where there is room for them. `form` suits the task;
// walk_form() has the one that takes least time. `given` holds the queries where they go with the launch.
void launch_walks(WalkTaskCuda task, const InlineQueries& given, const WalkForm& form, cudaStream_t stream);

// Fills task.near_cells: a part of launch_walks().
void launch_rank_cells(const WalkTaskCuda& task, const InlineQueries& given, cudaStream_t stream);

}  // namespace kith
