// A thread for each column of a block of kSumBlock rows, then one for each column that adds the blocks in order.
#include "cluster/data/data_survey.hpp"

#include "cluster/data/kmeans_checks.hpp"
#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"

#include <algorithm>
#include <memory>

namespace kith {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kBlockSumsBytes = int64_t{12} << 20;  // rows are surveyed in parts whose blocks' sums take no more
constexpr int64_t kScaledRows = int64_t{1} << 18;       // directions: in parts of so many, whose lengths are kept

struct SurveyTask {
  DeviceRowsView rows;
  int64_t cols = 0;
  const float* origin = nullptr;   // cols
  const double* scales = nullptr;  // of each row; null: 1
  double* blocks = nullptr;        // for each block of kSumBlock rows: the columns' sums, then their squares'
  double* sums = nullptr;          // 2 cols; added to
  uint32_t* not_finite = nullptr;  // set where a block's sum is not
};

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
    const double scale = task.scales == nullptr ? 1.0 : task.scales[i];
    const double value = static_cast<double>(static_cast<float>(data[i * task.rows.stride])) * scale - origin;
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
#pragma unroll 32
  for (int64_t block = 0; block < count; ++block) sum += blocks[block * width + i];
  sums[i] = sum;
}

// A block for kSampleCols columns: all values are read at once, since they lie far apart; the first warp adds them up,
// a thread for each column, in the order of the rows: the mean, 0 where it is not finite. Then how far they are from
// it.
constexpr int kSampleCols = 32;
constexpr int kSampleWarps = 32;
template <typename X>
__global__ void __launch_bounds__(kSampleCols* kSampleWarps)
    sample_kernel(DeviceRowsView rows, int64_t cols, int samples, float* origin, uint32_t* largest) {
  constexpr int kEach = kMostDataSamples / kSampleWarps;
  __shared__ float values[kMostDataSamples][kSampleCols];
  __shared__ float means[kSampleCols];
  const int lane = static_cast<int>(threadIdx.x) % kSampleCols;
  const int warp = static_cast<int>(threadIdx.x) / kSampleCols;
  const int64_t col = static_cast<int64_t>(blockIdx.x) * kSampleCols + lane;
  float mine[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int64_t s = warp + i * kSampleWarps;
    const bool real = s < samples && col < cols;
    const X* const row = static_cast<const X*>(rows.data) + (real ? s * rows.count / samples * rows.stride + col : 0);
    mine[i] = real ? static_cast<float>(*row) : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) values[warp + i * kSampleWarps][lane] = mine[i];
  __syncthreads();
  if (warp == 0) {
    double sum = 0;
#pragma unroll 16
    for (int s = 0; s < samples; ++s) sum += static_cast<double>(values[s][lane]);
    const auto mean = static_cast<float>(sum / static_cast<double>(samples));
    means[lane] = mean - mean == 0.0f ? mean : 0.0f;
    if (col < cols) origin[col] = means[lane];
  }
  __syncthreads();
  uint32_t magnitudes = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const float magnitude = fabsf(mine[i] - means[lane]);
    const bool real = warp + i * kSampleWarps < samples && col < cols;
    if (real && magnitude < HUGE_VALF) magnitudes = max(magnitudes, __float_as_uint(magnitude));
  }
  magnitudes = __reduce_max_sync(0xFFFFFFFFu, magnitudes);
  if (lane == 0 && magnitudes > 0) atomicMax(largest, magnitudes);
}

void launch_survey(const SurveyTask& task, cudaStream_t stream) {
  if (task.rows.count == 0) return;
  const int64_t blocks = divide_up(task.rows.count, kSumBlock);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(divide_up(task.cols, kThreads)));
  visit_dtype(task.rows.dtype, [&](auto stored) {
    launch(survey_kernel<typename decltype(stored)::type>, {grid, dim3(kThreads)}, stream, task);
  });
  launch(add_blocks_kernel, Grid::over(2 * task.cols, kThreads), stream, task.blocks, blocks, 2 * task.cols, task.sums);
}

}  // namespace

DataSample sample_cuda(const MatrixView& rows, int64_t samples, const Resources& resources) {
  const DeviceGuard guard(rows.space().device);
  const auto context = std::make_shared<const DeviceContext>(rows.space().device, resources.options().stream);
  const int64_t cols = rows.cols();
  const DeviceArray<float> found(cols + 1, "a sample of the rows", context, resources);
  auto* const largest = vectors<uint32_t>(found.data() + cols);  // the bits of a float that is not negative
  context->fill(largest, 0, 1);
  visit_dtype(rows.dtype(), [&](auto stored) {
    using X = typename decltype(stored)::type;
    launch(sample_kernel<X>, Grid::of(divide_up(cols, kSampleCols), kSampleCols * kSampleWarps), context->stream(),
           device_rows(rows), cols, static_cast<int>(samples), found.data(), largest);
  });
  DataSample sample;
  sample.origin.resize(static_cast<size_t>(cols) + 1);
  context->copy_values(sample.origin.data(), found.data(), cols + 1);
  context->synchronize();
  sample.largest = sample.origin.back();
  sample.origin.pop_back();
  return sample;
}

int64_t first_not_finite_cuda(const MatrixView& rows, const Resources& resources) {
  const DeviceGuard guard(rows.space().device);
  const auto context = std::make_shared<const DeviceContext>(rows.space().device, resources.options().stream);
  const DeviceArray<uint32_t> found(1, "the check for NaN", context, resources);
  RowFindings findings;
  findings.first_bad = found.data();
  context->fill(findings.first_bad, 0xFF, 1);  // kNoBadRow
  launch_inspect_rows(device_rows(rows), rows.cols(), findings, context->stream());
  uint32_t bad = kNoBadRow;
  context->copy_values(&bad, findings.first_bad, 1);
  context->synchronize();
  return bad == kNoBadRow ? -1 : int64_t{bad};
}

int64_t survey_cuda(const MatrixView& rows, const std::vector<float>& origin, bool directions, bool check_finite,
                    std::vector<double>& sums, const Resources& resources) {
  const DeviceGuard guard(rows.space().device);
  const auto context = std::make_shared<const DeviceContext>(rows.space().device, resources.options().stream);
  const cudaStream_t stream = context->stream();
  const int64_t cols = rows.cols();
  const int64_t part_blocks = std::max<int64_t>(kBlockSumsBytes / (16 * cols), 1);
  const int64_t most_blocks = directions ? std::min(part_blocks, kScaledRows / kSumBlock) : part_blocks;
  const int64_t blocks = std::min(divide_up(rows.rows(), kSumBlock), most_blocks);
  const DeviceArray<double> scales(directions ? blocks * kSumBlock : 0, "the rows' lengths", context, resources);
  const DeviceArray<double> block_sums(blocks * 2 * cols, "the columns' variances", context, resources);
  const DeviceArray<double> totals(2 * cols, "the columns' variances", context, resources);
  const DeviceArray<float> device_origin(cols, "the columns' variances", context, resources);
  const DeviceArray<uint32_t> any_not_finite(1, "the columns' variances", context, resources);
  SurveyTask task;
  task.cols = cols;
  task.blocks = block_sums.data();
  task.sums = totals.data();
  task.origin = device_origin.data();
  task.not_finite = any_not_finite.data();
  context->copy_values(task.sums, sums.data(), 2 * cols);
  context->copy_values(device_origin.data(), origin.data(), cols);
  context->fill(task.not_finite, 0, 1);
  for (int64_t first = 0; first < rows.rows(); first += blocks * kSumBlock) {
    task.rows = device_rows(rows.slice(first, std::min(blocks * kSumBlock, rows.rows() - first)));
    if (directions) {
      RowFindings lengths;
      lengths.inverse_norms = scales.data();
      launch_inspect_rows(task.rows, cols, lengths, stream);
      task.scales = lengths.inverse_norms;
    }
    launch_survey(task, stream);
  }
  uint32_t not_finite = 0;
  context->copy_values(sums.data(), task.sums, 2 * cols);
  context->copy_values(&not_finite, task.not_finite, 1);
  context->synchronize();
  return check_finite && not_finite != 0 ? first_not_finite_cuda(rows, resources) : -1;
}

}  // namespace kith
