#include "ivf/segment/coding_steps_cuda.hpp"

#include "core/divide.hpp"
#include "core/half.hpp"
#include "cuda/launch.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;

template <typename X>
__global__ void residual_kernel(const X* rows, int64_t stride, int64_t count, int64_t cols, const float* centres,
                                int64_t centre_count, const int32_t* lists, float* residuals) {
  const int64_t total = count * cols;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += step) {
    const int64_t row = i / cols;
    const int64_t col = i - row * cols;
    const float value = static_cast<float>(rows[row * stride + col]);
    if (centres == nullptr) {
      residuals[i] = value;
      continue;
    }
    const int64_t list = lists[row] < 0 || lists[row] >= centre_count ? 0 : int64_t{lists[row]};
    residuals[i] = __fsub_rn(value, centres[list * cols + col]);
  }
}

__global__ void narrow_kernel(const int64_t* lists, int64_t count, int32_t* narrow) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) narrow[i] = static_cast<int32_t>(lists[i]);
}

template <typename X>
void launch_residuals_of(const ResidualTask& task, cudaStream_t stream) {
  const int64_t blocks = std::min<int64_t>(divide_up(task.rows.count * task.cols, int64_t{kThreads}), int64_t{1} << 20);
  launch(residual_kernel<X>, Grid::of(blocks, kThreads), stream, static_cast<const X*>(task.rows.data),
         task.rows.stride, task.rows.count, task.cols, task.centres, task.centre_count, task.lists, task.residuals);
}

}  // namespace

void launch_residuals(const ResidualTask& task, cudaStream_t stream) {
  switch (task.rows.dtype) {
    case DType::f32: return launch_residuals_of<float>(task, stream);
    case DType::f16: return launch_residuals_of<Half>(task, stream);
    case DType::bf16: return launch_residuals_of<BFloat16>(task, stream);
    case DType::u8: return launch_residuals_of<uint8_t>(task, stream);
    case DType::i8: return launch_residuals_of<int8_t>(task, stream);
    default: return;
  }
}

void launch_narrow_lists(const int64_t* lists, int64_t count, int32_t* narrow, cudaStream_t stream) {
  launch(narrow_kernel, Grid::over(count, kThreads), stream, lists, count, narrow);
}

}  // namespace kith
