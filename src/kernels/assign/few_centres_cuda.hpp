// The nearest centre of every row on the GPU, with the labels and keys of assign_cpu.hpp, in one kernel that compares
// all pairs: for few centres, or little work.
//
// A thread has a row in its registers; the centres are in shared memory. Sums of f32 choose a centre
// (few_centre_screen.hpp); rows for which that is not certain, few, compare canonical keys, as all do by inner
// products. Cost: one read of the rows and 2 rows x centres x columns f32 operations. No memory.
#pragma once

#include "kernels/assign/few_centre_screen.hpp"
#include "kernels/assign/rows_seen.hpp"
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
  bool check_finite = true;  // where rows are seen: AssignForm::pairs looks for the first that is not finite
};
// One of the forms that compare all pairs.
void launch_compare_pairs(AssignForm form, const FewCentresTask& task, int multiprocessors, cudaStream_t stream);

// For suits_few_centres.
void launch_few_centres(const FewCentresTask& task, int multiprocessors, cudaStream_t stream);
// For more than kFewCentreCols columns, by squared_l2: suits_wide_few_centres.
void launch_wide_few_centres(const FewCentresTask& task, int multiprocessors, cudaStream_t stream);
// For little work with up to kTiledCentres, by squared_l2: suits_tiled_centres.
void launch_tiled_centres(const FewCentresTask& task, cudaStream_t stream);

}  // namespace kith
