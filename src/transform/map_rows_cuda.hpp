// Rows on a GPU, value by value: widened to f32 with columns behind them, then shifted or scaled. One pass, bound by
// memory; the same operations, and so bits, as on the CPU.
#pragma once

#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct RowMap {
  int64_t in = 0;
  int64_t out = 0;                        // columns; those behind `in` are zero
  float behind = 0;                       // but for the first of them
  const float* offset = nullptr;          // added, one for each column that comes out; device memory
  float sign = 1;                         // 1 or -1, of the offset
  const double* inverse_norms = nullptr;  // what each row is multiplied by in float64; device memory
};

// Enqueues and returns. `to` is f32, `stride` values from row to row.
void launch_map_rows(const DeviceRowsView& rows, const RowMap& map, float* to, int64_t stride, cudaStream_t stream);

}  // namespace kith
