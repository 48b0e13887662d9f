#include "quantize/additive/additive_training.hpp"

#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "core/parallel_for.hpp"
#include "kernels/dense/dense.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/select/smallest_values.hpp"
#include "rows/row_blocks.hpp"
#include "rows/row_sample.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {

void path_residual(const Codebooks& books, int64_t k, const float* row, const uint8_t* path, float* out) {
  std::copy_n(row, books.cols, out);
  for (int64_t b = 0; b < k; ++b) {
    const float* const word = books.word(b, path[b]);
    for (int64_t c = 0; c < books.cols; ++c) out[c] -= word[c];
  }
}

namespace {

constexpr int64_t kBatchBytes = 4 << 20;
constexpr int64_t kMostBatchRows = 1024;
constexpr int64_t kTaskRows = 16;

int64_t path_bytes(const Codebooks& books) { return array_bytes<float>(books.words() + books.cols + 1); }

// Extends the paths of a batch of rows by one book at a time.
class BeamSearch {
 public:
  // For batches of up to batch_rows().
  BeamSearch(const Codebooks& books, int64_t beam, const Resources& resources)
      : books_(books),
        beam_(beam),
        resources_(resources.with_progress({})),
        residuals_(batch_rows(books, beam) * beam * books.cols, "residuals", resources),
        squares_(batch_rows(books, beam) * beam, "residuals", resources),
        products_(batch_rows(books, beam) * beam * books.words(), "products with a codebook", resources),
        word_squares_(static_cast<size_t>(books.words())),
        workers_(static_cast<size_t>(resources.threads())) {}

  static int64_t batch_rows(const Codebooks& books, int64_t beam) {
    return std::clamp<int64_t>(kBatchBytes / (beam * path_bytes(books)), 1, kMostBatchRows);
  }
  // The number of paths of a row after `books` books.
  static int64_t count_after(int64_t books, int bits, int64_t beam) {
    int64_t count = 1;
    for (int64_t k = 0; k < books && count < beam; ++k) count <<= bits;
    return std::min(count, beam);
  }

  // `rows`: contiguous f32. `paths`: per row `beam` places of books().books bytes; the first count_after(k) are its
  // paths after k books, and are replaced by those after k + 1. The book may have changed since the last call.
  void extend(int64_t k, const float* rows, int64_t count, uint8_t* paths) {
    const int64_t held = count_after(k, books_.bits, beam_);
    const int64_t cols = books_.cols;
    prepare_book(k);
    const auto leave_residuals = [&](int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
        for (int64_t p = 0; p < held; ++p) {
          float* const residual = residuals_.data() + (i * held + p) * cols;
          path_residual(books_, k, rows + i * cols, paths + (i * beam_ + p) * books_.books, residual);
          squares_[i * held + p] = static_cast<float>(canonical_squared_norm_cpu(residual, cols));
        }
      }
    };
    for_row_blocks("encode", count, resources_, leave_residuals, kTaskRows);
    const DenseView<const float> left{residuals_.data(), count * held, cols, cols, 1};
    const DenseView<const float> book{books_.book(k), books_.words(), cols, cols, 1};
    multiply(left, book.transposed(), {products_.data(), count * held, books_.words(), books_.words(), 1}, {},
             resources_);
    const auto choose_some = [&](int64_t first, int64_t end, int slot) {
      for (int64_t i = first; i < end; ++i) {
        choose(k, held, i, paths + i * beam_ * books_.books, workers_[static_cast<size_t>(slot)]);
      }
    };
    for_row_blocks("encode", count, resources_, choose_some, kTaskRows);
  }

 private:
  // The working memory of one thread to choose paths.
  struct Worker {
    std::vector<float> values;
    std::vector<uint32_t> listed;
    std::vector<float> keys;
    std::vector<uint64_t> found;
    std::vector<uint8_t> before;
  };

  void prepare_book(int64_t k) {
    longest_word_ = 0;
    for (int64_t j = 0; j < books_.words(); ++j) {
      const double square = canonical_squared_norm_cpu(books_.word(k, j), books_.cols);
      word_squares_[static_cast<size_t>(j)] = static_cast<float>(square);
      longest_word_ = std::max(longest_word_, std::sqrt(square));
    }
  }

  void choose(int64_t k, int64_t held, int64_t row, uint8_t* paths, Worker& worker) const {
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
      for (int64_t j = 0; j < words; ++j)
        values[j] = (square + word_squares_[static_cast<size_t>(j)]) - 2 * products[j];
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

  const Codebooks books_;
  const int64_t beam_;
  const Resources resources_;
  HostArray<float> residuals_;  // of a batch's paths
  HostArray<float> squares_;    // of these
  HostArray<float> products_;   // with the book
  std::vector<float> word_squares_;
  double longest_word_ = 0;
  std::vector<Worker> workers_;
};

// A batch of rows and its paths.
struct BeamBatch {
  BeamBatch(const Codebooks& books, int64_t beam, int64_t rows, const Resources& resources)
      : batch(std::min(BeamSearch::batch_rows(books, beam), rows)),
        search(books, beam, resources),
        values(batch * books.cols, "rows to encode", resources),
        paths(batch * beam * books.books, "paths", resources) {}

  int64_t batch;
  BeamSearch search;
  HostArray<float> values;
  HostArray<uint8_t> paths;
};

// The memory of a step beside the search itself.
Footprint extending_footprint(const Codebooks& books, int64_t beam, const Resources& resources) {
  const int64_t paths = BeamSearch::batch_rows(books, beam) * beam;
  return product_footprint<float>(paths, books.words(), books.cols, resources);
}

}  // namespace

Footprint beam_encoding_footprint(const Codebooks& books, int64_t beam, int64_t rows, const Resources& resources) {
  return footprint_of<BeamBatch>(resources, books, beam, rows).beside(extending_footprint(books, beam, resources));
}

void encode_beam(const Codebooks& books, int64_t beam, const MatrixView& rows, uint8_t* codes,
                 const Resources& resources) {
  if (rows.rows() == 0) return;
  BeamBatch memory(books, beam, rows.rows(), resources);
  auto& [batch, search, values, paths] = memory;
  ProgressMeter meter("encode", rows.rows(), resources);
  for (int64_t first = 0; first < rows.rows(); first += batch) {
    const int64_t count = std::min(batch, rows.rows() - first);
    for (int64_t i = 0; i < count; ++i) widen_row(rows, first + i, values.data() + i * books.cols);
    for (int64_t k = 0; k < books.books; ++k) search.extend(k, values.data(), count, paths.data());
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(paths.data() + i * beam * books.books, books.books, codes + (first + i) * books.books);
    }
    meter.add(count);
    meter.poll();
  }
  meter.finish();
}

Footprint residual_training_footprint(const ResidualQuantizerParams& params, const RowsInfo& rows,
                                      const Resources& resources) {
  const int64_t count = std::min(rows.rows, kFirstCodebookRows);
  const int64_t left = std::max(count, std::min(count * params.beam, kFirstCodebookRows));
  const Codebooks books{nullptr, params.codebooks, params.bits, rows.cols};
  const Footprint working = kmeans_codebook_footprint(left, rows.cols, params.bits, resources)
                                .then(extending_footprint(books, params.beam, resources));
  return array_footprint<float>(count, rows.cols)
      .beside(sample_footprint(rows.rows)
                  .then(gathering_footprint(rows, count, resources))
                  .then(array_footprint<float>(left, rows.cols)
                            .beside(array_footprint<uint8_t>(count, params.beam * params.codebooks))
                            .beside(footprint_of<BeamSearch>(resources, books, params.beam))
                            .beside(working)));
}

std::vector<float> train_residual(const ResidualQuantizerParams& params, RowSource& source,
                                  const Resources& resources) {
  check_training_rows("residual quantizer", source.rows(), params.bits, resources);
  const int64_t cols = source.info().cols;
  const HostArray<float> rows = training_sample(source, kFirstCodebookRows, params.seed, resources);
  const int64_t count = rows.size() / cols;
  const int64_t most_left = std::min(count * params.beam, kFirstCodebookRows);
  const HostArray<float> left(std::max(count, most_left) * cols, "residuals", resources);
  const HostArray<uint8_t> paths(count * params.beam * params.codebooks, "paths", resources);
  std::copy(rows.begin(), rows.end(), left.begin());
  int64_t left_rows = count;
  const int64_t words = int64_t{1} << params.bits;
  std::vector<float> values(static_cast<size_t>(params.codebooks * words * cols));
  const Codebooks books{values.data(), params.codebooks, params.bits, cols};
  BeamSearch search(books, params.beam, resources);
  const int64_t batch = BeamSearch::batch_rows(books, params.beam);
  ProgressMeter meter("RQ", params.codebooks, resources);
  const Resources quiet = resources.with_progress({});
  for (int64_t k = 0; k < params.codebooks; ++k) {
    const std::vector<float> book = kmeans_codebook(MatrixView(left.data(), left_rows, cols), params.bits,
                                                    params.seed + static_cast<uint64_t>(k), quiet);
    std::copy(book.begin(), book.end(), values.begin() + k * words * cols);
    for (int64_t first = 0; first < count; first += batch) {
      const int64_t some = std::min(batch, count - first);
      search.extend(k, rows.data() + first * cols, some, paths.data() + first * params.beam * params.codebooks);
    }
    // The residuals of all paths of all rows, or an even sample: the next book serves every path.
    const int64_t held = BeamSearch::count_after(k + 1, params.bits, params.beam);
    left_rows = std::min(count * held, most_left);
    for (int64_t i = 0; i < left_rows; ++i) {
      const int64_t at = i * (count * held) / left_rows;
      const int64_t row = at / held;
      const uint8_t* const own = paths.data() + (row * params.beam + (at + row) % held) * params.codebooks;
      path_residual(books, k + 1, rows.data() + row * cols, own, left.data() + i * cols);
    }
    meter.add(1);
    meter.poll();
  }
  meter.finish();
  return values;
}

}  // namespace kith
