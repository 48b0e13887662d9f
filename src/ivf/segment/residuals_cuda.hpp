// Rows less the centres of their lists, on a GPU, and list numbers as 32 bits.
#pragma once

#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct ResidualTask {
  DeviceRowsView rows;  // of any dtype
  int64_t cols = 0;
  const float* centres = nullptr;  // none: rows are only widened
  const int32_t* lists = nullptr;  // of each row
  int64_t centre_count = 0;        // a list beyond them counts as the first
  float* residuals = nullptr;      // rows x cols
};

// One f32 subtraction a value. Enqueues and returns.
void launch_residuals(const ResidualTask& task, cudaStream_t stream);

// Enqueues and returns.
void launch_narrow_lists(const int64_t* lists, int64_t count, int32_t* narrow, cudaStream_t stream);

}  // namespace kith
