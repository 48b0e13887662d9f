// Unary terms of rows for the search by tables: |c|^2 - 2 <x, c> for each codeword c of a book, with x and c moved as
// in pairwise_tables.hpp, rounded to the step of the book's tables.
//
// Codewords are packed once for all threads, sixteen side by side. The sums for a few rows and four vectors of
// codewords are kept in registers, and the codewords in the first-level cache for a whole slice of rows.
//
// Cost per row: columns x codewords multiply-adds, and a few operations per codeword. Memory: a copy of the
// codebooks.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "quantize/additive/pairwise_tables.hpp"

#include <cstdint>

namespace kith {

class UnaryTerms {
 public:
  static constexpr int64_t kSliceRows = 192;  // at a time

  UnaryTerms(const Codebooks& books, const PairwiseTables& tables, const Resources& resources);
  static int64_t scratch_floats(const Codebooks& books, int64_t rows);

  // A book's terms for up to kSliceRows rows, in steps, and their windows. fits[i] becomes 0 for a row whose terms or
  // norm are too large for tables.
  void round(int64_t book, const float* rows, const double* norms, int64_t count, float* scratch, int16_t* out,
             int16_t* windows, uint8_t* fits) const;

 private:
  const Codebooks books_;
  const PairwiseTables& tables_;
  HostArray<float> packed_;
};

}  // namespace kith
