// A warp for each query.
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/warp.hpp"
#include "ivf/scan/scan_lists_task_cuda.hpp"

#include <cmath>

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    query_forms_kernel(const __grid_constant__ ProbedLists task, const __grid_constant__ QueryForms forms) {
  ptx::wait_for_kernel_before();
  const int64_t query = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (query >= task.query_count) return;
  const auto cols = static_cast<int>(task.lists.codec.format.cols);
  const float* const values = task.queries + query * task.query_stride;
  if (forms.scales != nullptr) {
    float largest = 0;
    for (int col = lane_index(); col < cols; col += 32) largest = fmaxf(largest, fabsf(values[col]));
    largest = warp_largest(largest);
    if (lane_index() == 0) forms.scales[query] = operand_scale(largest);
  }
  if (forms.unit == nullptr) return;
  double square = 0;
  for (int col = lane_index(); col < cols; col += 32) square = fma(double{values[col]}, double{values[col]}, square);
  const double factor = 1 / sqrt(warp_sum(square));  // of a zero vector infinite: 0 times that is NaN
  for (int col = lane_index(); col < cols; col += 32) {
    forms.unit[query * cols + col] = static_cast<float>(values[col] * factor);
  }
}

}  // namespace

void launch_query_forms(const ProbedLists& task, const QueryForms& forms, cudaStream_t stream) {
  if (forms.unit == nullptr && forms.scales == nullptr) return;
  launch(query_forms_kernel, Grid::over(32 * task.query_count, kThreads).chained(), stream, task, forms);
}

}  // namespace kith
