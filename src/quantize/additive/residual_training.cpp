#include "quantize/additive/residual_training.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "quantize/additive/beam_search.hpp"
#include "quantize/additive/first_codebooks.hpp"
#include "quantize/additive/training_sample.hpp"

#include <algorithm>

namespace kith {

int64_t residual_training_bytes(const ResidualQuantizerParams& params, int64_t rows, int64_t cols, int threads) {
  const int64_t count = std::min(rows, kFirstCodebookRows);
  const int64_t left = std::max(count, std::min(count * params.beam, kFirstCodebookRows));
  const int64_t kmeans = array_bytes<float>(left * cols) / 2 + (int64_t{4} << 20) * threads;
  const Codebooks books{nullptr, params.codebooks, params.bits, cols};
  const int64_t search = BeamSearch::bytes_for(books, params.beam) + (int64_t{1} << 20) * threads;
  return array_bytes<float>((count + left) * cols) + count * params.beam * params.codebooks + kmeans + search;
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
      search.extend(k, rows.data() + first * cols, some, paths.data() + first * params.beam * params.codebooks, meter);
    }
    // What the paths of all rows leave, or an even share of it: the next book serves every path.
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
