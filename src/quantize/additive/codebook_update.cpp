#include "quantize/additive/codebook_update.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "quantize/additive/cholesky.hpp"
#include "transform/dense.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kColumns = 64;  // of sums that one task adds up
constexpr int64_t kUpdateScratch = int64_t{2} << 20;

// How often the codewords of a book occur with those of every book.
void count_pairs(const CodedRows& coded, int64_t k, const Dense& counts) {
  const int64_t words = int64_t{1} << coded.bits;
  for (int64_t i = 0; i < coded.count; ++i) {
    const uint8_t* const codes = coded.codes + i * coded.books;
    double* const to = counts.row(k * words + codes[k]);
    for (int64_t l = 0; l < coded.books; ++l) to[l * words + codes[l]] += 1.0;
  }
}

void add_rows(const CodedRows& coded, int64_t k, int64_t first, int64_t cols, const Dense& sums) {
  const int64_t words = int64_t{1} << coded.bits;
  for (int64_t i = 0; i < coded.count; ++i) {
    const float* const row = coded.rows + i * coded.cols + first;
    double* const to = sums.row(k * words + coded.codes[i * coded.books + k]) + first;
    for (int64_t c = 0; c < cols; ++c) to[c] += static_cast<double>(row[c]);
  }
}

}  // namespace

int64_t codebook_update_bytes(const CodedRows& coded, int threads) {
  const int64_t words = coded.books << coded.bits;
  return array_bytes<double>(words * (words + coded.cols)) + threads * kUpdateScratch;
}

void update_codebooks(const CodedRows& coded, double lambda, float* codebooks, const Resources& resources) {
  const int64_t words = coded.books << coded.bits;
  const Dense counts(words, words, "codewords that occur together", resources);
  const Dense sums(words, coded.cols, "sums of rows", resources);
  const Resources quiet = resources.with_progress({});
  const int64_t parts = divide_up(coded.cols, kColumns);
  ProgressMeter meter("update", coded.books * (parts + 1), quiet);
  parallel_for(coded.books * (parts + 1), meter, quiet, [&](int64_t task, int) {
    const int64_t k = task % coded.books;
    const int64_t first = task / coded.books * kColumns;
    if (first < coded.cols) {
      add_rows(coded, k, first, std::min(kColumns, coded.cols - first), sums);
    } else {
      count_pairs(coded, k, counts);
    }
  });
  for (int64_t w = 0; w < words; ++w) counts(w, w) += lambda;
  solve_positive_definite(counts.view(), sums.view(), lambda, quiet);
  std::transform(sums.row(0), sums.row(0) + words * coded.cols, codebooks,
                 [](double value) { return static_cast<float>(value); });
}

}  // namespace kith
