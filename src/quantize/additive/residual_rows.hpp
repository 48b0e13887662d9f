// A row on the grid less the codewords of its codes: exact, in whatever order.
#pragma once

#include "quantize/additive/icm_engine.hpp"

#include <cstdint>

namespace kith {

// Without the codeword of `book`, where that is one.
inline void take_off_codewords(const SearchBooks& search, const float* row, const uint8_t* codes, int64_t book,
                               IcmOthers others, float* residual) {
  const Codebooks& books = search.books();
  const int64_t cols = books.cols;
  for (int64_t c = 0; c < cols; ++c) residual[c] = row[c];
  for (int64_t k = 0; k < books.books; ++k) {
    if (k == book) continue;
    const float* const word = others == IcmOthers::before && k > book ? search.mean(k) : books.word(k, codes[k]);
    for (int64_t c = 0; c < cols; ++c) residual[c] -= word[c];
  }
}

}  // namespace kith
