// The minima of groups of rows (operand_layout.hpp) for every query, of rows of few columns (is_narrow): from
// differences in f32 in the place of products of halves, which cannot tell such rows apart (narrow_window.hpp).
//
// A block has 256 rows in shared memory at a time, a thread four queries in registers. Cost: two operations for
// each query and row of one column, five of two, seven of three.
#pragma once

#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/knn_windows_cuda.hpp"
#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct NarrowMinimaTask {
  KeyKind kind = KeyKind::l2;
  int64_t cols = 0;
  DeviceRowsView queries;  // with inverse norms for cosine, as the rows
  DeviceRowsView rows;
  float* minima = nullptr;  // queries x group_count(rows, 2): squared distances; infinite where a group has no rows
  int multiprocessors = 0;
};
// Enqueues and returns.
void launch_narrow_minima(const NarrowMinimaTask& task, cudaStream_t stream);

// The windows of these minima, as launch_knn_windows(): what is written to task.thresholds is for products, with which
// queries that fail are tried again. `inverse_norms` are those of cosine's queries: zero vectors are as far from one
// row as from any other. Enqueues and returns.
void launch_narrow_windows(const KnnWindowTask& task, const double* inverse_norms, cudaStream_t stream);

}  // namespace kith
