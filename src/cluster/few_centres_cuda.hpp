// The nearest of few centres on the GPU, with the labels and keys of nearest_centre.hpp, in one pass over the rows.
//
// A thread has a row in its registers; the centres are in shared memory. Sums of f32 choose a centre
// (few_centre_screen.hpp); rows for which that is not certain, few, compare canonical keys, as all do by inner
// products. Cost: one read of the rows and 2 rows x centres x columns f32 operations. No memory.
#pragma once

#include "cluster/rows_seen.hpp"
#include "kernels/distance/canonical.hpp"
#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct FewCentresTask {
  KeyKind kind = KeyKind::squared_l2;  // or inner_product
  DeviceRowsView rows;
  const float* centres = nullptr;  // one after the other
  int64_t centre_count = 0;
  int64_t cols = 0;
  int32_t* labels = nullptr;
  float* keys = nullptr;     // or null
  RowsSeen* seen = nullptr;  // or null
  int64_t probe = -1;        // the row that is asked, by squared_l2; or -1
};
// For suits_few_centres.
void launch_few_centres(const FewCentresTask& task, int multiprocessors, cudaStream_t stream);
// For more than kFewCentreCols columns, by squared_l2: suits_wide_few_centres.
void launch_wide_few_centres(const FewCentresTask& task, int multiprocessors, cudaStream_t stream);
// For little work with up to kTiledCentres, by squared_l2: suits_tiled_centres.
void launch_tiled_centres(const FewCentresTask& task, cudaStream_t stream);

}  // namespace kith
