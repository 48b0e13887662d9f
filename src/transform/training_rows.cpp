#include "transform/training_rows.hpp"

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "kernels/dense/factorisations.hpp"
#include "rows/finite_check.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr uint64_t kSampleStream = 0x73616D70;
constexpr int64_t kPieceRows = 4096;

// Calls use(values, count) for piece after piece.
template <typename Use>
void for_pieces(const TrainingRows& rows, const HostArray<float>& values, ProgressMeter& meter, const Use& use) {
  for (int64_t first = 0; first < rows.rows(); first += kPieceRows) {
    const int64_t count = std::min(kPieceRows, rows.rows() - first);
    rows.fetch(first, count, values.data());
    use(values.data(), count);
    meter.add(count);
    meter.poll();
  }
}

HostArray<float> piece_of(const TrainingRows& rows, const Resources& resources) {
  return {std::min(kPieceRows, rows.rows()) * rows.cols(), "training rows", resources};
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
  std::vector<float> mean;
  for (const double sum : sums) mean.push_back(static_cast<float>(sum / static_cast<double>(rows.rows())));
  return mean;
}

}  // namespace

TrainingRows::TrainingRows(RowSource& source, const TransformChain& before, int64_t most, uint64_t seed,
                           const Resources& resources)
    : source_(source),
      before_(before),
      resources_(resources.with_progress({}).with_device(Device::cpu())),
      numbers_(drawn_rows(CounterRng(seed, kSampleStream), source.rows(), most, resources)),
      cols_(before.empty() ? source.info().cols : before.out()) {}

Footprint TrainingRowsShape::fetching(int64_t count, const Resources& resources) const {
  if (before.empty()) return {};
  return array_footprint<float>(count, stored_cols)
      .beside(transform_footprint(before, {count, stored_cols, DType::f32}, resources.with_device(Device::cpu())));
}

void TrainingRows::fetch(int64_t first, int64_t count, float* out) const {
  const std::vector<uint32_t> some(numbers_.begin() + first, numbers_.begin() + first + count);
  const int64_t stored_cols = source_.info().cols;
  const HostArray<float> stored(before_.empty() ? 0 : count * stored_cols, "training rows", resources_);
  float* const as_stored = before_.empty() ? out : stored.data();
  gather_as_floats(source_, some, as_stored, resources_);
  const MatrixView view(as_stored, count, stored_cols);
  refuse_untrainable(view, {0, some.data()}, resources_);
  if (!before_.empty()) before_.apply(view, MutableMatrixView(out, count, cols_), resources_);
}

std::vector<float> column_means(const TrainingRows& rows, const Resources& resources) {
  const HostArray<float> piece = piece_of(rows, resources);
  ProgressMeter meter("mean", rows.rows(), resources);
  std::vector<float> mean = means(rows, piece, meter);
  meter.finish();
  return mean;
}

Footprint column_means_footprint(const TrainingRowsShape& shape, const Resources& resources) {
  const int64_t piece = std::min(kPieceRows, shape.rows);
  return array_footprint<float>(piece, shape.cols).beside(shape.fetching(piece, resources));
}

PrincipalAxes principal_axes(const TrainingRows& rows, const Resources& resources) {
  const int64_t cols = rows.cols();
  const Resources quiet = resources.with_progress({});
  const HostArray<float> piece = piece_of(rows, resources);
  ProgressMeter meter("PCA", 2 * rows.rows(), resources);
  PrincipalAxes found;
  found.mean = means(rows, piece, meter);
  Dense products(cols, cols, "a covariance matrix", resources);
  std::vector<double> sums(static_cast<size_t>(cols));
  for_pieces(rows, piece, meter, [&](float* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t c = 0; c < cols; ++c) values[i * cols + c] -= found.mean[static_cast<size_t>(c)];
    }
    add_columns(values, count, cols, sums);
    const DenseView<const float> some{values, count, cols, cols, 1};
    multiply(some.transposed(), some, products.view(), {.adds = true, .symmetric = true}, quiet);
  });
  const auto count = static_cast<double>(rows.rows());
  for (int64_t i = 0; i < cols; ++i) {  // what rounding has left of the mean
    for (int64_t j = 0; j < cols; ++j) {
      products(i, j) =
          products(i, j) / count - sums[static_cast<size_t>(i)] / count * (sums[static_cast<size_t>(j)] / count);
    }
  }
  SymmetricEigen eigen = symmetric_eigen(products, quiet);
  found.axes = std::move(eigen.vectors);
  for (const double value : eigen.values) found.variances.push_back(std::max(value, 0.0));
  meter.finish();
  return found;
}

Footprint principal_axes_footprint(const TrainingRowsShape& shape, const Resources& resources) {
  const int64_t cols = shape.cols;
  const Footprint square = array_footprint<double>(cols, cols);
  const Footprint product = product_footprint<double>(cols, cols, std::min(kPieceRows, shape.rows), resources);
  return column_means_footprint(shape, resources).beside(square).beside(product.then(square));  // of axes, by QL steps
}

}  // namespace kith
