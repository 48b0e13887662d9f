// Re-ranking of candidates that are marked by bits (operand_layout.hpp): for many queries with a few hundred each.
#pragma once

#include "kernels/rerank/rerank_task.hpp"

#include <cuda_runtime_api.h>

namespace kith {

// What launch_rerank does where the task has marks.
void launch_rerank_marked(const RerankTask& task, const FailedQueries& failed, cudaStream_t stream);

}  // namespace kith
