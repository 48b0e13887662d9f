// One pass over vectors on the GPU that finds the first with a NaN or an infinity, the first with a value below zero,
// and the inverse norms.
#pragma once

#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

inline constexpr uint32_t kNoBadRow = 0xFFFFFFFFu;

// Outputs; null skips one. The first two hold kNoBadRow or an earlier result, and are lowered.
struct RowFindings {
  uint32_t* first_bad = nullptr;       // the smallest row that is not finite
  uint32_t* first_negative = nullptr;  // the smallest with a value below zero
  double* inverse_norms = nullptr;     // of every row

  bool wanted() const { return first_bad != nullptr || first_negative != nullptr || inverse_norms != nullptr; }
};

// Enqueues and returns. `rows` has fewer than 2^32 - 1 rows.
void launch_inspect_rows(const DeviceRowsView& rows, int64_t cols, const RowFindings& findings, cudaStream_t stream);

}  // namespace kith
