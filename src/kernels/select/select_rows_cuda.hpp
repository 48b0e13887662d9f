// The k smallest or largest of every row of an f32 matrix on the GPU, sorted, with their columns.
//
// One order: smaller (or larger) values first, -0.0 equal to +0.0, a NaN after everything else, ties to the smaller
// column. A row shorter than k is filled up with an infinity and column -1. A zero comes back as +0.0, a NaN as the
// canonical one. The result is the same bytes on every run and every path.
#pragma once

#include "kernels/select/select_plan.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct SelectInput {
  const float* values = nullptr;  // on the device
  int64_t rows = 0;
  int64_t cols = 0;  // below 2^31
  int64_t row_stride = 0;
  const int32_t* lengths = nullptr;  // of each row, on the device, at most cols; null: all are cols
  const int64_t* ids = nullptr;      // same layout as the values; null: columns are returned
};

struct SelectOutput {
  float* values = nullptr;     // rows x k
  int32_t* columns = nullptr;  // rows x k
  int64_t* ids = nullptr;      // rows x k, instead of columns if the input has ids; ties go to the smaller id
};

SelectProblem problem_of(const SelectInput& input, int64_t k, SelectOrder order);

// Runs `plan`, made for this problem, on memory of plan.workspace_bytes bytes, aligned for uint64_t. Enqueues and
// returns.
void launch_select_rows(const SelectInput& input, const SelectOutput& output, const SelectProblem& problem,
                        const SelectPlan& plan, void* workspace, cudaStream_t stream);

// The kernels behind select_rows_cuda.hpp, one launcher for each path of select_plan.hpp. They enqueue and return.
struct SelectCall {
  SelectInput input;
  SelectOutput output;
  SelectPlan plan;
  int64_t k = 0;
  bool largest = false;
  uint64_t* workspace = nullptr;
};

void launch_registers_select(const SelectCall& call, cudaStream_t stream);
void launch_filter_select(const SelectCall& call, cudaStream_t stream);
void launch_warp_queue_select(const SelectCall& call, cudaStream_t stream);
void launch_warp_queue_wide_select(const SelectCall& call, cudaStream_t stream);
void launch_radix_select(const SelectCall& call, cudaStream_t stream);

}  // namespace kith
