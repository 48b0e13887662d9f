#include "quantize/additive/additive_training.hpp"

#include <kith/error.hpp>
#include <kith/kmeans.hpp>

#include "cluster/kmeans_fit.hpp"
#include "core/divide.hpp"
#include "kernels/dense/dense.hpp"
#include "quantize/product/product_training.hpp"
#include "rows/finite_check.hpp"
#include "rows/row_sample.hpp"
#include "transform/opq.hpp"
#include "transform/training_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace kith {
namespace {

constexpr int64_t kIterations = 20;
constexpr int64_t kRotations = 25;  // more do not reduce the error of the trained codebooks

std::vector<float> rotated_product_books(const MatrixView& rows, int64_t books, int bits, uint64_t seed,
                                         const Resources& resources) {
  const int64_t cols = rows.cols();
  const int64_t out = books * divide_up(cols, books);
  const TransformChain none;
  ViewSource source(rows);
  const TrainingRows training(source, none, kFirstCodebookRows, seed, resources);
  const Dense rotation = optimized_rotation(training, {out, books, kRotations}, seed, resources);
  const int64_t count = training.rows();
  HostArray<float> turned(count * out, "rotated training rows", resources);
  {
    const HostArray<float> values(count * cols, "training rows", resources);
    training.fetch(0, count, values.data());
    const HostArray<float> matrix(out * cols, "a rotation", resources);
    std::transform(rotation.row(0), rotation.row(0) + out * cols, matrix.begin(),
                   [](double value) { return static_cast<float>(value); });
    const DenseView<const float> turn{matrix.data(), out, cols, cols, 1};
    multiply(DenseView<const float>{values.data(), count, cols, cols, 1}, turn.transposed(),
             DenseView<float>{turned.data(), count, out, out, 1}, {}, resources.with_progress({}));
  }
  const CodeFormat format = CodeFormat::of_parts(out, bits, books);
  ViewSource turned_source(MatrixView(turned.data(), count, out));
  // The caller has already warned of too few rows.
  const Resources silent = resources.with_log([&](LogLevel level, std::string_view text) {
    if (level != LogLevel::warning) resources.log(level, text);
  });
  const std::vector<float> parts = train_product(format, turned_source, seed, silent);
  // Rotates the codewords back.
  std::vector<float> found(static_cast<size_t>((books << bits) * cols));
  const int64_t width = format.part_cols();
  std::vector<double> word(static_cast<size_t>(cols));
  for (int64_t w = 0; w < books << bits; ++w) {
    std::fill(word.begin(), word.end(), 0.0);
    const int64_t first = (w >> bits) * width;
    for (int64_t p = 0; p < width; ++p) {
      const auto value = static_cast<double>(parts[static_cast<size_t>(w * width + p)]);
      for (int64_t c = 0; c < cols; ++c) word[static_cast<size_t>(c)] += value * rotation(first + p, c);
    }
    std::transform(word.begin(), word.end(), found.begin() + w * cols,
                   [](double value) { return static_cast<float>(value); });
  }
  return found;
}

// If there are more books than columns, books cannot have sub-spaces of their own.
bool starts_residual(AdditiveStart start, int64_t books, int bits, int64_t cols) {
  return start == AdditiveStart::residual || books > cols || bits < 4;
}

KMeansParams params_of(int bits, uint64_t seed) {
  KMeansParams params;
  params.clusters = int64_t{1} << bits;
  params.iterations = kIterations;
  params.seed = seed;
  params.compute_labels = false;
  return params;
}

std::vector<float> residual_books(const MatrixView& rows, int64_t books, int bits, uint64_t seed,
                                  const Resources& resources) {
  const int64_t cols = rows.cols();
  const int64_t count = std::min(rows.rows(), kFirstCodebookRows);
  const HostArray<float> left(count * cols, "residuals", resources);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(left.data() + i * cols, rows.row(i), static_cast<size_t>(cols) * sizeof(float));
  }
  const MatrixView residuals(left.data(), count, cols);
  std::vector<float> found;
  const HostArray<int32_t> labels(count, "labels", resources);
  for (int64_t k = 0; k < books; ++k) {
    const std::vector<float> words = kmeans_codebook(residuals, bits, seed + static_cast<uint64_t>(k), resources);
    KMeansParams params;
    params.clusters = int64_t{1} << bits;
    KMeans nearest(params);
    const Resources quiet = resources.with_progress({});
    nearest.set_centres(MatrixView(words.data(), params.clusters, cols), quiet);
    nearest.predict(residuals, labels.data(), nullptr, quiet);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t c = 0; c < cols; ++c) left[i * cols + c] -= words[static_cast<size_t>(labels[i] * cols + c)];
    }
    found.insert(found.end(), words.begin(), words.end());
  }
  return found;
}

}  // namespace

std::vector<float> kmeans_codebook(const MatrixView& rows, int bits, uint64_t seed, const Resources& resources) {
  const KMeansParams params = params_of(bits, seed);
  KMeans kmeans(params);
  kmeans.fit(rows, {}, resources);
  const KMeansSnapshot fitted = kmeans.snapshot();
  std::vector<float> words(static_cast<size_t>(params.clusters * rows.cols()));
  for (int64_t j = 0; j < params.clusters; ++j) {
    std::memcpy(words.data() + j * rows.cols(), fitted.centres.row(j),
                static_cast<size_t>(rows.cols()) * sizeof(float));
  }
  return words;
}

Footprint kmeans_codebook_footprint(int64_t rows, int64_t cols, int bits, const Resources& resources) {
  return fit_footprint(params_of(bits, 0), {rows, cols, DType::f32}, resources);
}

std::vector<float> first_codebooks(AdditiveStart start, const MatrixView& rows, int64_t books, int bits, uint64_t seed,
                                   const Resources& resources) {
  if (start == AdditiveStart::random) return {};
  return starts_residual(start, books, bits, rows.cols()) ? residual_books(rows, books, bits, seed, resources)
                                                          : rotated_product_books(rows, books, bits, seed, resources);
}

Footprint first_codebooks_footprint(AdditiveStart start, int64_t all_rows, int64_t cols, int64_t books, int bits,
                                    const Resources& resources) {
  if (start == AdditiveStart::random) return {};
  const int64_t rows = std::min(all_rows, kFirstCodebookRows);
  if (starts_residual(start, books, bits, cols)) {
    const RowsInfo residuals(rows, cols, DType::f32);
    const Footprint assigning = assign_footprint(params_of(bits, 0), residuals, resources);
    return array_footprint<float>(rows, cols + 1)  // with labels
        .beside(array_footprint<float>(cols << bits).beside(assigning))
        .then(array_footprint<float>(rows, cols + 1).beside(kmeans_codebook_footprint(rows, cols, bits, resources)));
  }
  const int64_t out = books * divide_up(cols, books);
  const Footprint turning =
      array_footprint<float>(rows + out, cols).beside(product_footprint<float>(rows, out, cols, resources));
  const Footprint training =
      product_training_footprint(CodeFormat::of_parts(out, bits, books), {rows, out, DType::f32}, resources);
  return optimized_rotation_footprint({rows, cols, cols}, {out, books, kRotations}, resources)
      .then(sample_footprint(all_rows))
      .then(
          array_footprint<double>(out, cols).beside(array_footprint<float>(rows, out)).beside(turning.then(training)));
}

namespace {

constexpr uint64_t kSampleStream = 0x6C737173;

}  // namespace

void check_training_rows(std::string_view what, int64_t rows, int bits, const Resources& resources) {
  const int64_t count = int64_t{1} << bits;
  if (rows < count) {
    throw InvalidArgument(
        fmt::format("{} rows cannot train books of {} codewords; give at least {} rows ({} train well), or fewer bits",
                    rows, count, count, kFewRowsPerCodeword * count));
  }
  if (rows < kFewRowsPerCodeword * count) {
    resources.log(LogLevel::warning, fmt::format("{}: {} rows train books of {} codewords; {} or more train well", what,
                                                 rows, count, kFewRowsPerCodeword * count));
  }
}

HostArray<float> training_sample(RowSource& source, int64_t most, uint64_t seed, const Resources& resources) {
  const int64_t all = source.rows();
  const int64_t count = std::min(all, most);
  HostArray<float> values(count * source.info().cols, "training rows", resources);
  const std::vector<uint32_t> drawn = drawn_rows(CounterRng(seed, kSampleStream), all, count, resources);
  gather_as_floats(source, drawn, values.data(), resources);
  refuse_untrainable(MatrixView(values.data(), count, source.info().cols), {0, drawn.data()},
                     resources.with_progress({}));
  // Residuals of such values would be infinite.
  constexpr float kMost = std::numeric_limits<float>::max() / 4;
  const auto far = std::find_if(values.begin(), values.end(), [](float value) { return std::abs(value) > kMost; });
  if (far != values.end()) {
    throw InvalidArgument(
        fmt::format("training row {} holds {}: what codewords leave of it is more than f32 holds; scale "
                    "the vectors down",
                    drawn[static_cast<size_t>((far - values.begin()) / source.info().cols)], *far));
  }
  return values;
}

}  // namespace kith
