#include "quantize/additive/first_codebooks.hpp"

#include <kith/kmeans.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "quantize/product/product_training.hpp"
#include "transform/dense_product.hpp"
#include "transform/opq.hpp"
#include "transform/training_rows.hpp"

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr int64_t kIterations = 20;
constexpr int64_t kRotations = 25;  // more of them leave the error of the trained codebooks as it is

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
  CodeFormat format;
  format.kind = CodeKind::product;
  format.cols = out;
  format.bits = bits;
  format.parts = books;
  ViewSource turned_source(MatrixView(turned.data(), count, out));
  // Of few rows whoever trains has warned.
  const Resources silent = resources.with_log([&](LogLevel level, std::string_view text) {
    if (level != LogLevel::warning) resources.log(level, text);
  });
  const std::vector<float> parts = train_product(format, turned_source, seed, silent);
  // Back to the rows' own space.
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
  KMeansParams params;
  params.clusters = int64_t{1} << bits;
  params.iterations = kIterations;
  params.seed = seed;
  params.compute_labels = false;
  KMeans kmeans(params);
  kmeans.fit(rows, {}, resources);
  std::vector<float> words(static_cast<size_t>(params.clusters * rows.cols()));
  for (int64_t j = 0; j < params.clusters; ++j) {
    std::memcpy(words.data() + j * rows.cols(), kmeans.centres().row(j),
                static_cast<size_t>(rows.cols()) * sizeof(float));
  }
  return words;
}

std::vector<float> first_codebooks(AdditiveStart start, const MatrixView& rows, int64_t books, int bits, uint64_t seed,
                                   const Resources& resources) {
  if (start == AdditiveStart::random) return {};
  // More books than columns have no sub-spaces of their own.
  if (start == AdditiveStart::residual || books > rows.cols() || bits < 4) {
    return residual_books(rows, books, bits, seed, resources);
  }
  return rotated_product_books(rows, books, bits, seed, resources);
}

}  // namespace kith
