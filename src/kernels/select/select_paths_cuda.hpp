// The kernels behind select_rows_cuda.hpp, one launcher for each path of select_plan.hpp. They enqueue and return.
#pragma once

#include "kernels/select/select_arrays.hpp"
#include "kernels/select/select_plan.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

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
