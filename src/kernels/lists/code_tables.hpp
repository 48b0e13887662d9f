// Lookup tables of product codes: what each codeword adds to the value of a vector, for one query.
//
//   value(code) = sum over the parts of table[part][code of the part]
//
// For few queries per list this is faster than decoding the list. Where code_screen.hpp has a screen, tables rounded
// down to bytes first give lower bounds for many vectors at a time, and exact sums are computed only for vectors below
// a limit.
//
// Cost: cols x 2^bits multiplications for a query's tables; parts loads and additions per vector.
#pragma once

#include "kernels/codes/code_format.hpp"

#include <cstdint>

namespace kith {

// Codewords with the columns of a part one after the other: parts x part_cols x 2^bits.
struct CodewordColumns {
  const float* values = nullptr;
  const float* squares = nullptr;  // of each codeword; null if the value has no such term
};

// For each query: tables[part][word] = square + factor * (query's part . codeword), parts x 2^bits. Loading codewords
// takes longer than multiplying them, so each is loaded once for all these queries.
inline constexpr int64_t kTablesTogether = 4;
void fill_code_tables(const CodeFormat& format, const CodewordColumns& words, const float* const* queries,
                      int64_t query_count, float factor, float* const* tables);

// The value of a code, in four independent sums.
[[gnu::always_inline]] inline float sum_code_tables(const CodeFormat& format, const float* tables,
                                                    const uint8_t* code) {
  const int64_t words = format.codewords();
  float sums[4] = {};
  int64_t p = 0;
  if (format.bits == 8) {
    for (; p + 4 <= format.parts; p += 4, tables += 4 * 256) {
      for (int64_t j = 0; j < 4; ++j) sums[j] += tables[j * 256 + code[p + j]];
    }
  } else if (format.bits == 4) {
    for (; p + 4 <= format.parts; p += 4, tables += 4 * 16) {
      const uint8_t first = code[p / 2];
      const uint8_t second = code[p / 2 + 1];
      sums[0] += tables[first & 15];
      sums[1] += tables[16 + (first >> 4)];
      sums[2] += tables[32 + (second & 15)];
      sums[3] += tables[48 + (second >> 4)];
    }
  }
  for (; p < format.parts; ++p, tables += words) sums[p % 4] += tables[sub_code(code, p, format.bits)];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Byte tables for up to kMostByteParts parts: entry minus the part's smallest, rounded down to multiples of `step`.
struct ByteTables {
  double least = 0;  // the sum of the parts' smallest entries
  double step = 0;   // 0: no tables, since all entries are equal or some are not finite
};
inline constexpr int64_t kMostByteParts = 256;  // their sums fit 16 bits
ByteTables round_code_tables(const CodeFormat& format, const float* tables, uint8_t* bytes);

}  // namespace kith
