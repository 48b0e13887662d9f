#include "ivf/segment/residuals_cuda.hpp"

#include "core/divide.hpp"
#include "core/half.hpp"
#include "cuda/error.hpp"

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
void launch(const ResidualTask& task, unsigned blocks, cudaStream_t stream) {
  residual_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const X*>(task.rows.data), task.rows.stride,
                                                   task.rows.count, task.cols, task.centres, task.centre_count,
                                                   task.lists, task.residuals);
}

}  // namespace

void launch_residuals(const ResidualTask& task, cudaStream_t stream) {
  const int64_t values = task.rows.count * task.cols;
  if (values == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(divide_up(values, kThreads), int64_t{1} << 20));
  switch (task.rows.dtype) {
    case DType::f32: launch<float>(task, blocks, stream); break;
    case DType::f16: launch<Half>(task, blocks, stream); break;
    case DType::bf16: launch<BFloat16>(task, blocks, stream); break;
    case DType::u8: launch<uint8_t>(task, blocks, stream); break;
    case DType::i8: launch<int8_t>(task, blocks, stream); break;
  }
  KITH_CUDA_CHECK(cudaGetLastError());
}

void launch_narrow_lists(const int64_t* lists, int64_t count, int32_t* narrow, cudaStream_t stream) {
  if (count == 0) return;
  narrow_kernel<<<static_cast<unsigned>(divide_up(count, kThreads)), kThreads, 0, stream>>>(lists, count, narrow);
  KITH_CUDA_CHECK(cudaGetLastError());
}

}  // namespace kith
