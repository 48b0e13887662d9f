// A row on the grid less the codewords of its codes: exact, in whatever order.
#pragma once

#include "quantize/additive/icm_engine.hpp"

#include <cstdint>

namespace kith {

// row - the sum of `count` others.
void subtract_rows_cpu(const float* row, const float* const* others, int64_t count, int64_t cols, float* out);

// Without the codeword of `book`, where that is one.
inline void take_off_codewords(const SearchBooks& search, const float* row, const uint8_t* codes, int64_t book,
                               IcmOthers others, float* residual) {
  const Codebooks& books = search.books();
  const float* words[kMostCodebooks];
  int64_t count = 0;
  for (int64_t k = 0; k < books.books; ++k) {
    if (k == book) continue;
    words[count++] = others == IcmOthers::before && k > book ? search.mean(k) : books.word(k, codes[k]);
  }
  subtract_rows_cpu(row, words, count, books.cols, residual);
}

}  // namespace kith
