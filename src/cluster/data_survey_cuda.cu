#include "cluster/data_survey_cuda.hpp"

#include "cluster/centre_sums.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/error.hpp"
#include "kernels/product/operand_layout.hpp"

namespace kith {
namespace {

constexpr int kThreads = 128;

template <typename X>
__global__ void __launch_bounds__(kThreads) survey_kernel(SurveyTask task) {
  const int64_t col = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  if (col >= task.cols) return;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kSumBlock;
  const int64_t end = first + kSumBlock < task.rows.count ? first + kSumBlock : task.rows.count;
  const X* const data = static_cast<const X*>(task.rows.data) + col;
  const auto origin = static_cast<double>(task.origin[col]);
  double sum = 0;
  double squares = 0;
#pragma unroll 8
  for (int64_t i = first; i < end; ++i) {
    const double value = static_cast<double>(static_cast<float>(data[i * task.rows.stride])) - origin;
    sum += value;
    squares += value * value;
  }
  double* const out = task.blocks + static_cast<int64_t>(blockIdx.x) * 2 * task.cols;
  out[col] = sum;
  out[task.cols + col] = squares;
  if (!(sum - sum == 0.0)) *task.not_finite = 1;
}

__global__ void __launch_bounds__(kThreads)
    add_blocks_kernel(const double* blocks, int64_t count, int64_t width, double* sums) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= width) return;
  double sum = sums[i];
#pragma unroll 8
  for (int64_t block = 0; block < count; ++block) sum += blocks[block * width + i];
  sums[i] = sum;
}

// A warp for each row.
template <typename X>
__global__ void __launch_bounds__(kThreads)
    first_not_finite_kernel(const X* rows, int64_t stride, int64_t count, int64_t cols, uint32_t* first) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (row >= count) return;
  bool finite = true;
  for (int64_t col = threadIdx.x % 32; col < cols; col += 32) {
    const auto value = static_cast<float>(rows[row * stride + col]);
    finite = finite && value - value == 0.0f;
  }
  if (!finite) atomicMin(first, static_cast<uint32_t>(row));
}

__global__ void __launch_bounds__(kThreads)
    distances_kernel(const uint32_t* ordered, int64_t count, bool spherical, float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const float key = key_of_ordered(ordered[i]);
  out[i] = spherical ? 0.0f - key : key;
}

}  // namespace

void launch_survey(const SurveyTask& task, cudaStream_t stream) {
  if (task.rows.count == 0) return;
  const int64_t blocks = divide_rounding_up(task.rows.count, kSumBlock);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(divide_rounding_up(task.cols, kThreads)));
  visit_dtype(task.rows.dtype, [&](auto stored) {
    survey_kernel<typename decltype(stored)::type><<<grid, kThreads, 0, stream>>>(task);
  });
  KITH_CUDA_CHECK_LAUNCH("survey_kernel");
  add_blocks_kernel<<<static_cast<unsigned>(divide_rounding_up(2 * task.cols, kThreads)), kThreads, 0, stream>>>(
      task.blocks, blocks, 2 * task.cols, task.sums);
  KITH_CUDA_CHECK_LAUNCH("add_blocks_kernel");
}

void launch_first_not_finite(const DeviceRowsView& rows, int64_t cols, uint32_t* first, cudaStream_t stream) {
  if (rows.count == 0) return;
  const auto blocks = static_cast<unsigned>(divide_rounding_up(rows.count * 32, kThreads));
  visit_dtype(rows.dtype, [&](auto stored) {
    using X = typename decltype(stored)::type;
    first_not_finite_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const X*>(rows.data), rows.stride, rows.count,
                                                             cols, first);
  });
  KITH_CUDA_CHECK_LAUNCH("first_not_finite_kernel");
}

void launch_distances(const uint32_t* ordered, int64_t count, bool spherical, float* out, cudaStream_t stream) {
  if (count == 0) return;
  distances_kernel<<<static_cast<unsigned>(divide_rounding_up(count, kThreads)), kThreads, 0, stream>>>(ordered, count,
                                                                                                        spherical, out);
  KITH_CUDA_CHECK_LAUNCH("distances_kernel");
}

}  // namespace kith
