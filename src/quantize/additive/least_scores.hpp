// The innermost steps of the search for codes on the CPU: sums of rows of 16-bit tables and where they are least, and
// rows less codewords.
//
// Cost for a row and a book of 256: 256 x books additions of 16 bits, and as many bytes read from the cache, twice.
#pragma once

#include <cstdint>

namespace kith {

inline constexpr int64_t kMostScoredBooks = 256;
inline constexpr int64_t kMostScoredWords = 256;  // of a book: codes are bytes

struct ScoreTask {
  const int16_t* tables = nullptr;  // of the book: for each other book its rows, table_words x width; its own is zero
  int64_t end_book = 0;             // the books before it are added up
  int64_t skipped_book = -1;        // except this one
  int64_t table_words = 0;
  int64_t width = 0;                 // of a row of a table: a multiple of 32
  const int16_t* unary = nullptr;    // of the block's rows, `width` each
  const int16_t* windows = nullptr;  // of the block's rows
  const uint8_t* codes = nullptr;    // of the block's rows, `books` each
  int64_t books = 0;
};

// For each of the listed rows the code of the least sum. Where further codes are within the row's window of it, all of
// these go to `doubtful`, their number to counts[i], which else is 1. `doubtful`: kMostScoredWords for each listed row.
void least_scores_cpu(const ScoreTask& task, const uint32_t* rows, int64_t count, uint8_t* codes, uint16_t* counts,
                      uint32_t* doubtful);

// row - the sum of `count` others; exact on the grid, in whatever order.
void subtract_rows_cpu(const float* row, const float* const* others, int64_t count, int64_t cols, float* out);

}  // namespace kith
