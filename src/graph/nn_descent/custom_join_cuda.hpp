// The kernels around a user's (custom_sets_cuda.hpp): rows to begin with and the samples of joins become sets, and the
// distances of sets become offers. They enqueue and do not wait.
//
// All pairs of a join are compared, as there is no bound to rule one out by. Bound by the user's kernel.
#pragma once

#include "graph/nn_descent/custom_sets_cuda.hpp"
#include "graph/nn_descent/join_task_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// The sets of lists first, first + 1, ...: a list's row, then the `places` rows that are named to it, kNobody behind them.
void launch_named_sets(const uint32_t* named, int64_t places, int64_t first, int64_t count, const CustomSetsRef& sets,
                       cudaStream_t stream);
// What they are offered, in the places of the names; kPadding where there was nobody.
void launch_named_offers(const CustomSetsRef& sets, int64_t places, int64_t count, uint64_t* offers,
                         cudaStream_t stream);

// The samples that the rows of a launch join, NEW ones first, each kind by number.
void launch_join_sets(const JoinTask& task, const CustomSetsRef& sets, cudaStream_t stream);
// Offers what the joins found to the inbox.
void launch_join_offers(const JoinTask& task, const CustomSetsRef& sets, cudaStream_t stream);

}  // namespace kith
