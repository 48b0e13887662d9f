#include "quantize/additive/beam_search.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/select/smallest_values.hpp"
#include "rows/stored_row.hpp"
#include "transform/dense_product.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr int64_t kBatchBytes = 4 << 20;
constexpr int64_t kMostBatchRows = 1024;
constexpr int64_t kTaskRows = 16;

int64_t path_bytes(const Codebooks& books) { return array_bytes<float>(books.words() + books.cols + 1); }

}  // namespace

void path_residual(const Codebooks& books, int64_t k, const float* row, const uint8_t* path, float* out) {
  std::copy_n(row, books.cols, out);
  for (int64_t b = 0; b < k; ++b) {
    const float* const word = books.word(b, path[b]);
    for (int64_t c = 0; c < books.cols; ++c) out[c] -= word[c];
  }
}

int64_t BeamSearch::count_after(int64_t books, int bits, int64_t beam) {
  int64_t count = 1;
  for (int64_t k = 0; k < books && count < beam; ++k) count <<= bits;
  return std::min(count, beam);
}

int64_t BeamSearch::batch_rows(const Codebooks& books, int64_t beam) {
  return std::clamp<int64_t>(kBatchBytes / (beam * path_bytes(books)), 1, kMostBatchRows);
}

int64_t BeamSearch::bytes_for(const Codebooks& books, int64_t beam) {
  return batch_rows(books, beam) * beam * path_bytes(books);
}

BeamSearch::BeamSearch(const Codebooks& books, int64_t beam, const Resources& resources)
    : books_(books),
      beam_(beam),
      resources_(resources.with_progress({})),
      residuals_(batch_rows(books, beam) * beam * books.cols, "residuals", resources),
      squares_(batch_rows(books, beam) * beam, "residuals", resources),
      products_(batch_rows(books, beam) * beam * books.words(), "products with a codebook", resources),
      word_squares_(static_cast<size_t>(books.words())),
      workers_(static_cast<size_t>(resources.threads())) {}

void BeamSearch::prepare_book(int64_t k) {
  longest_word_ = 0;
  for (int64_t j = 0; j < books_.words(); ++j) {
    const double square = canonical_squared_norm_cpu(books_.word(k, j), books_.cols);
    word_squares_[static_cast<size_t>(j)] = static_cast<float>(square);
    longest_word_ = std::max(longest_word_, std::sqrt(square));
  }
}

void BeamSearch::extend(int64_t k, const float* rows, int64_t count, uint8_t* paths, ProgressMeter& meter) {
  const int64_t held = count_after(k, books_.bits, beam_);
  const int64_t cols = books_.cols;
  prepare_book(k);
  parallel_for(divide_up(count, kTaskRows), meter, resources_, [&](int64_t task, int) {
    for (int64_t i = task * kTaskRows; i < std::min((task + 1) * kTaskRows, count); ++i) {
      for (int64_t p = 0; p < held; ++p) {
        float* const residual = residuals_.data() + (i * held + p) * cols;
        path_residual(books_, k, rows + i * cols, paths + (i * beam_ + p) * books_.books, residual);
        squares_[i * held + p] = static_cast<float>(canonical_squared_norm_cpu(residual, cols));
      }
    }
  });
  const DenseView<const float> left{residuals_.data(), count * held, cols, cols, 1};
  const DenseView<const float> book{books_.book(k), books_.words(), cols, cols, 1};
  multiply(left, book.transposed(), {products_.data(), count * held, books_.words(), books_.words(), 1}, {},
           resources_);
  parallel_for(divide_up(count, kTaskRows), meter, resources_, [&](int64_t task, int slot) {
    for (int64_t i = task * kTaskRows; i < std::min((task + 1) * kTaskRows, count); ++i) {
      choose(k, held, i, paths + i * beam_ * books_.books, workers_[static_cast<size_t>(slot)]);
    }
  });
}

void BeamSearch::choose(int64_t k, int64_t held, int64_t row, uint8_t* paths, Worker& worker) const {
  const int64_t words = books_.words();
  const int64_t stay = count_after(k + 1, books_.bits, beam_);
  worker.values.resize(static_cast<size_t>(held * words));
  worker.listed.resize(static_cast<size_t>(words));
  worker.keys.resize(static_cast<size_t>(words));
  double longest = 0;
  for (int64_t p = 0; p < held; ++p) {
    const float square = squares_[row * held + p];
    const float* const products = products_.data() + (row * held + p) * words;
    float* const values = worker.values.data() + p * words;
    for (int64_t j = 0; j < words; ++j) values[j] = (square + word_squares_[static_cast<size_t>(j)]) - 2 * products[j];
    if (!(square <= longest)) longest = square;  // a NaN stays
  }
  // Every value is within `error` of its distance, and keys are rounded.
  const double both = std::sqrt(longest) + longest_word_;
  float limit = std::numeric_limits<float>::infinity();
  if (both * both < kLargestSquaredNorm) {
    const double error = product_error(books_.cols) * both * both + underflow_error(books_.cols);
    const double kth = rank_value(worker.values.data(), held * words, stay);
    limit = static_cast<float>((kth + 2 * error) * (1 + 0x1p-20) + 2 * error + 0x1p-120);
  }
  worker.found.clear();
  for (int64_t p = 0; p < held; ++p) {
    const float* const values = worker.values.data() + p * words;
    int64_t count = 0;
    for (int64_t j = 0; j < words; ++j) {
      worker.listed[static_cast<size_t>(count)] = static_cast<uint32_t>(j);
      count += !(values[j] > limit);
    }
    if (count == 0) continue;
    const float* const residual = residuals_.data() + (row * held + p) * books_.cols;
    canonical_keys_cpu(KeyKind::squared_l2, {residual, 0.0}, MatrixView(books_.book(k), words, books_.cols),
                       worker.listed.data(), count, worker.keys.data());
    for (int64_t i = 0; i < count; ++i) {
      const auto path = static_cast<uint32_t>(p << books_.bits) | worker.listed[static_cast<size_t>(i)];
      worker.found.push_back(pack_neighbor(ordered_key(worker.keys[static_cast<size_t>(i)]), path));
    }
  }
  std::partial_sort(worker.found.begin(), worker.found.begin() + stay, worker.found.end());
  worker.before.assign(paths, paths + held * books_.books);
  for (int64_t p = 0; p < stay; ++p) {
    const int64_t from = row_of(worker.found[static_cast<size_t>(p)]);
    uint8_t* const path = paths + p * books_.books;
    std::copy_n(worker.before.data() + (from >> books_.bits) * books_.books, k, path);
    path[k] = static_cast<uint8_t>(from & (words - 1));
  }
}

void encode_beam(const Codebooks& books, int64_t beam, const MatrixView& rows, uint8_t* codes,
                 const Resources& resources) {
  const int64_t batch = std::min(BeamSearch::batch_rows(books, beam), rows.rows());
  if (batch == 0) return;
  BeamSearch search(books, beam, resources);
  const HostArray<float> values(batch * books.cols, "rows to encode", resources);
  const HostArray<uint8_t> paths(batch * beam * books.books, "paths", resources);
  ProgressMeter meter("encode", rows.rows(), resources);
  for (int64_t first = 0; first < rows.rows(); first += batch) {
    const int64_t count = std::min(batch, rows.rows() - first);
    for (int64_t i = 0; i < count; ++i) widen_row(rows, first + i, values.data() + i * books.cols);
    for (int64_t k = 0; k < books.books; ++k) search.extend(k, values.data(), count, paths.data(), meter);
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(paths.data() + i * beam * books.books, books.books, codes + (first + i) * books.books);
    }
    meter.add(count);
    meter.poll();
  }
  meter.finish();
}

}  // namespace kith
