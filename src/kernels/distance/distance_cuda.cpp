#include "kernels/distance/distance_cuda.hpp"

#include "cuda/error.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"

namespace kith {
namespace {

// So few steps take no longer than the second kernel that goes with the matrix units; fewer where rows are read value
// by value.
constexpr int64_t kFewSteps = int64_t{1} << 23;
constexpr int64_t kFewUnevenSteps = int64_t{1} << 21;

bool multiplies_doubles() {
  int device = 0;
  int major = 0;
  KITH_CUDA_CHECK(cudaGetDevice(&device));
  KITH_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  return has_fast_doubles(10 * major);
}

}  // namespace

void launch_distance(const DistanceTask& task, cudaStream_t stream) {
  if (task.queries.count == 0 || task.rows.count == 0) return;
  const int64_t few = task.cols % 4 == 0 && task.rows.stride % 4 == 0 ? kFewSteps : kFewUnevenSteps;
  const bool few_steps = task.queries.count * task.rows.count <= few / task.cols;
  if (is_product(task.kind) && task.cols > kFewColumns && !few_steps && multiplies_doubles()) {
    return launch_certain_distance(task, stream);  // which looks at the rows itself
  }
  if (task.first_bad != nullptr) launch_inspect_rows(task.rows, task.cols, {.first_bad = task.first_bad}, stream);
  if (task.kind == KeyKind::hamming) return launch_bit_distance(task, stream);
  if (task.cols <= kFewColumns) return launch_few_columns_distance(task, stream);
  launch_lane_distance(task, stream);
}

}  // namespace kith
