// Launches walks on a GPU: one launch per batch, one block per query.
#pragma once

#include "graph/search/walk/walk_task_cuda.hpp"
#include "kernels/rerank/few_results_cuda.hpp"

#include <cuda_runtime_api.h>

namespace kith {

// Enqueues. Chooses the task's `seen` and layout, and fills task.near_cells if there is room for them. `form` must suit
// the task; walk_form() returns the fastest. `given` holds the queries if they are passed as kernel arguments.
void launch_walks(WalkTaskCuda task, const InlineQueries& given, const WalkForm& form, cudaStream_t stream);

// Fills task.near_cells, as a part of launch_walks().
void launch_rank_cells(const WalkTaskCuda& task, const InlineQueries& given, cudaStream_t stream);

}  // namespace kith
