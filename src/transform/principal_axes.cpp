#include "transform/principal_axes.hpp"

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "kernels/dense/factorisations.hpp"
#include "transform/training_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kith {
namespace {

// Calls use(values, count) for piece after piece.
template <typename Use>
void for_pieces(const TrainingRows& rows, const HostArray<float>& values, ProgressMeter& meter, const Use& use) {
  for (int64_t first = 0; first < rows.rows(); first += kCovariancePiece) {
    const int64_t count = std::min(kCovariancePiece, rows.rows() - first);
    rows.fetch(first, count, values.data());
    use(values.data(), count);
    meter.add(count);
    meter.poll();
  }
}

HostArray<float> piece_of(const TrainingRows& rows, const Resources& resources) {
  return {std::min(kCovariancePiece, rows.rows()) * rows.cols(), "training rows", resources};
}

void add_columns(const float* values, int64_t count, int64_t cols, std::vector<double>& sums) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < cols; ++c) sums[static_cast<size_t>(c)] += static_cast<double>(values[i * cols + c]);
  }
}

std::vector<float> means(const TrainingRows& rows, const HostArray<float>& piece, ProgressMeter& meter) {
  std::vector<double> sums(static_cast<size_t>(rows.cols()));
  for_pieces(rows, piece, meter,
             [&](const float* values, int64_t count) { add_columns(values, count, rows.cols(), sums); });
  return mean_of(sums, rows.rows());
}

PrincipalAxes principal_axes_cpu(const TrainingRows& rows, const Resources& resources) {
  const int64_t cols = rows.cols();
  const Resources quiet = resources.with_progress({});
  const HostArray<float> piece = piece_of(rows, resources);
  ProgressMeter meter("PCA", 2 * rows.rows(), resources);
  std::vector<float> mean = means(rows, piece, meter);
  Dense products(cols, cols, "a covariance matrix", resources);
  std::vector<double> sums(static_cast<size_t>(cols));
  for_pieces(rows, piece, meter, [&](float* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t c = 0; c < cols; ++c) values[i * cols + c] -= mean[static_cast<size_t>(c)];
    }
    add_columns(values, count, cols, sums);
    const DenseView<const float> some{values, count, cols, cols, 1};
    multiply(some.transposed(), some, products.view(), {.adds = true, .symmetric = true}, quiet);
  });
  PrincipalAxes found = axes_of(std::move(mean), sums, std::move(products), rows.rows(), quiet);
  meter.finish();
  return found;
}

}  // namespace

std::vector<float> mean_of(const std::vector<double>& sums, int64_t rows) {
  std::vector<float> mean;
  mean.reserve(sums.size());
  for (const double sum : sums) mean.push_back(static_cast<float>(sum / static_cast<double>(rows)));
  return mean;
}

PrincipalAxes axes_of(std::vector<float> mean, const std::vector<double>& sums, Dense products, int64_t rows,
                      const Resources& resources) {
  const auto count = static_cast<double>(rows);
  for (int64_t i = 0; i < products.rows(); ++i) {  // what rounding has left of the mean
    for (int64_t j = 0; j < products.cols(); ++j) {
      products(i, j) =
          products(i, j) / count - sums[static_cast<size_t>(i)] / count * (sums[static_cast<size_t>(j)] / count);
    }
  }
  SymmetricEigen eigen = symmetric_eigen(products, resources);
  PrincipalAxes found{std::move(mean), {}, std::move(eigen.vectors)};
  for (const double value : eigen.values) found.variances.push_back(std::max(value, 0.0));
  return found;
}

std::vector<float> column_means(const TrainingRows& rows, const Resources& resources) {
  const HostArray<float> piece = piece_of(rows, resources);
  ProgressMeter meter("mean", rows.rows(), resources);
  std::vector<float> mean = means(rows, piece, meter);
  meter.finish();
  return mean;
}

Footprint column_means_footprint(const TrainingRowsShape& shape, const Resources& resources) {
  const int64_t piece = std::min(kCovariancePiece, shape.rows);
  return array_footprint<float>(piece, shape.cols).beside(shape.fetching(piece, resources));
}

PrincipalAxes principal_axes(const TrainingRows& rows, const Resources& resources) {
  const auto values = static_cast<double>(rows.rows() * rows.cols());
  const Device device = training_device(
      rows, {"PCA", [&] { return fmt::format("principal axes of {} x {} vectors", rows.rows(), rows.cols()); }},
      {{CostUnit::f64_step, values * static_cast<double>(rows.cols())}, {CostUnit::copied_byte, 4 * values}},
      [&](int index, const Resources& counting) {
        count_principal_axes_cuda(rows.rows(), rows.cols(), index, counting);
      },
      resources);
  return dispatch(
      device, [&] { return principal_axes_cpu(rows, resources); },
      [&](int index) { return principal_axes_cuda(rows, index, resources); });
}

Footprint principal_axes_footprint(const TrainingRowsShape& shape, const Resources& resources) {
  const int64_t cols = shape.cols;
  const Footprint square = array_footprint<double>(cols, cols);
  const Footprint product = product_footprint<double>(cols, cols, std::min(kCovariancePiece, shape.rows), resources);
  return column_means_footprint(shape, resources).beside(square).beside(product.then(square));  // of axes, by QL steps
}

}  // namespace kith
