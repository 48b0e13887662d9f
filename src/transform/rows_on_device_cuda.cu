#include "transform/rows_on_device.hpp"

#include "core/divide.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/launch.hpp"
#include "kernels/dense/dense_cuda.hpp"
#include "rows/rows_cuda.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kColumnThreads = 32;  // of a block: sums are long chains, and few
constexpr ProductTerms kOuterProducts{.adds = true, .symmetric = true};

// Each column's values in the order of the rows.
__global__ void __launch_bounds__(kColumnThreads)
    column_sums_kernel(const float* values, int64_t rows, int64_t cols, double* sums) {
  constexpr int kAhead = 32;  // rows on their way
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumnThreads + threadIdx.x;
  if (column >= cols) return;
  double sum = 0;
  int64_t i = 0;
  for (; i + kAhead <= rows; i += kAhead) {
    float some[kAhead];
#pragma unroll
    for (int r = 0; r < kAhead; ++r) some[r] = values[(i + r) * cols + column];
#pragma unroll
    for (int r = 0; r < kAhead; ++r) sum += static_cast<double>(some[r]);
  }
  for (; i < rows; ++i) sum += static_cast<double>(values[i * cols + column]);
  sums[column] = sum;
}

__global__ void __launch_bounds__(kThreads)
    subtract_kernel(float* values, int64_t rows, int64_t cols, const float* mean) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at < rows * cols) values[at] -= mean[at % cols];
}

__global__ void __launch_bounds__(kThreads) scale_kernel(float* values, int64_t count, double scale) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at < count) values[at] = static_cast<float>(static_cast<double>(values[at]) * scale);
}

}  // namespace

RowsOnDevice::RowsOnDevice(int64_t rows, int64_t cols, std::shared_ptr<const DeviceContext> context,
                           const Resources& resources)
    : rows_(rows),
      cols_(cols),
      context_(std::move(context)),
      values_(rows * cols, "training rows", context_, resources),
      mean_(cols, "training rows", context_, resources),
      sums_(cols, "training rows", context_, resources),
      products_(cols * cols, "a covariance matrix", context_, resources),
      parts_(product_part_values(cols, cols, std::min(rows, kCovariancePiece), kOuterProducts), "a covariance matrix",
             context_, resources) {}

void RowsOnDevice::fetch(const TrainingRows& rows, const Resources& resources) const {
  const std::optional<MatrixView> there = rows.on_gpu();
  context_->synchronize();  // the memory is there
  if (there && there->space().device == context_->device()) {
    return gather_floats_cuda(*there, rows.numbers(), values_.data(), resources);
  }
  const int64_t most = std::min(kCovariancePiece, rows_);
  const HostArray<float> piece(most * cols_, "training rows", resources);
  for (int64_t first = 0; first < rows_; first += most) {
    const int64_t count = std::min(most, rows_ - first);
    rows.fetch(first, count, piece.data());
    context_->copy_values(values_.data() + first * cols_, piece.data(), count * cols_);
    context_->synchronize();
  }
}

std::vector<double> RowsOnDevice::column_sums() const {
  launch(column_sums_kernel, Grid::over(cols_, kColumnThreads), context_->stream(), values_.data(), rows_, cols_,
         sums_.data());
  std::vector<double> sums(static_cast<size_t>(cols_));
  context_->copy_values(sums.data(), sums_.data(), cols_);
  context_->synchronize();
  return sums;
}

PrincipalAxes RowsOnDevice::load(const TrainingRows& rows, const Resources& resources) {
  const DeviceGuard guard(context_->device());
  fetch(rows, resources);
  std::vector<double> sums = column_sums();
  if (!std::all_of(sums.begin(), sums.end(), [](double sum) { return std::isfinite(sum); })) {
    // The host names the row.
    const HostArray<float> row(cols_, "a training row", resources);
    for (int64_t i = 0; i < rows_; ++i) rows.fetch(i, 1, row.data());
  }
  std::vector<float> mean = mean_of(sums, rows_);
  context_->copy_values(mean_.data(), mean.data(), cols_);
  launch(subtract_kernel, Grid::over(rows_ * cols_, kThreads), context_->stream(), values_.data(), rows_, cols_,
         mean_.data());
  sums = column_sums();
  context_->fill(products_.data(), 0, products_.size());
  const DenseView<double> products{products_.data(), cols_, cols_, cols_, 1};
  for (int64_t first = 0; first < rows_; first += kCovariancePiece) {
    const DenseView<const float> some = view().block(first, 0, std::min(kCovariancePiece, rows_ - first), cols_);
    launch_multiply(some.transposed(), some, products, kOuterProducts, parts_.data(), context_->stream());
  }
  Dense found(cols_, cols_, "a covariance matrix", resources);
  context_->copy_values(found.row(0), products_.data(), products_.size());
  context_->synchronize();
  return axes_of(std::move(mean), sums, std::move(found), rows_, resources);
}

void RowsOnDevice::multiply_by(double scale) const {
  launch(scale_kernel, Grid::over(values_.size(), kThreads), context_->stream(), values_.data(), values_.size(), scale);
}

PrincipalAxes principal_axes_cuda(const TrainingRows& rows, int device, const Resources& resources) {
  const DeviceGuard guard(device);
  const Resources quiet = resources.with_progress({});
  RowsOnDevice there(rows.rows(), rows.cols(), std::make_shared<const DeviceContext>(device, quiet.options().stream),
                     quiet);
  return there.load(rows, quiet);
}

void count_principal_axes_cuda(int64_t rows, int64_t cols, int device, const Resources& counting) {
  const DeviceGuard guard(device);
  const RowsOnDevice there(rows, cols, std::make_shared<const DeviceContext>(device, counting.options().stream),
                           counting);
}

}  // namespace kith
