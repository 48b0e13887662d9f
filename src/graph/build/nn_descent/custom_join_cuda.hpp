// The kernels of joins around a user's (custom_sets_cuda.hpp): samples become sets, and the distances of sets become
// offers. They enqueue and do not wait.
//
// All pairs of a join are compared, as there is no bound to rule one out by. Bound by the user's kernel.
#pragma once

#include "graph/build/nn_descent/join_task_cuda.hpp"
#include "graph/lists/pairs/custom_sets_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// The samples that the rows of a launch join, NEW ones first, each kind by number.
void launch_join_sets(const JoinTask& task, const CustomSetsRef& sets, cudaStream_t stream);
// Offers what the joins found to the inbox.
void launch_join_offers(const JoinTask& task, const CustomSetsRef& sets, cudaStream_t stream);

}  // namespace kith
