// The k smallest or largest of every row of an f32 matrix on the GPU, sorted, with their columns.
//
// One order: smaller (or larger) values first, -0.0 equal to +0.0, a NaN after everything else, ties to the smaller
// column. A row shorter than k is filled up with an infinity and column -1. A zero comes back as +0.0, a NaN as the
// canonical one. The result is the same bytes on every run and every path.
#pragma once

#include "kernels/select/select_arrays.hpp"
#include "kernels/select/select_plan.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

SelectProblem problem_of(const SelectInput& input, int64_t k, SelectOrder order);

// Runs `plan`, made for this problem, on memory of plan.workspace_bytes bytes, aligned for uint64_t. Enqueues and
// returns.
void launch_select_rows(const SelectInput& input, const SelectOutput& output, const SelectProblem& problem,
                        const SelectPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace kith
