// The unary terms of rows, which the tables of a search begin with: |c|^2 - 2 <x, c> for each codeword c of a book, x
// and c moved as in pairwise_tables.hpp, rounded to the steps of the book's tables.
//
// Codewords are packed once for all threads, sixteen side by side; sums of a few rows and four vectors of codewords are
// in registers, and the codewords that these use in the first-level cache for a whole slice of rows.
//
// Cost for a row: columns x codewords multiply-adds, and a few operations for each codeword. Memory: a copy of the
// codebooks.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "quantize/additive/pairwise_tables.hpp"

#include <cstdint>

namespace kith {

// Of one book and some rows.
struct UnaryTask {
  const float* packed = nullptr;   // the book's codewords
  const float* squares = nullptr;  // of these
  int64_t words = 0;
  int64_t width = 0;  // of a row of terms: the codewords, padded with 32767 at the end
  int64_t cols = 0;
  const float* rows = nullptr;  // moved
  int64_t count = 0;
  float room = 0;     // half the range that terms may have
  float inverse = 0;  // of the step
};

// `products`: count x width. fits[i] becomes 0 where a row's terms have not the room; `out`: count x width.
void unary_terms_cpu(const UnaryTask& task, float* products, int16_t* out, uint8_t* fits);

class UnaryTerms {
 public:
  static constexpr int64_t kSliceRows = 192;  // at a time

  UnaryTerms(const Codebooks& books, const PairwiseTables& tables, const Resources& resources);
  static int64_t scratch_floats(const Codebooks& books, int64_t rows);

  // A book's terms of up to kSliceRows rows, in steps, and their windows. fits[i] becomes 0 where tables are not fit
  // for a row, by its terms or by its norm.
  void round(int64_t book, const float* rows, const double* norms, int64_t count, float* scratch, int16_t* out,
             int16_t* windows, uint8_t* fits) const;

 private:
  const Codebooks books_;
  const PairwiseTables& tables_;
  HostArray<float> packed_;
};

}  // namespace kith
