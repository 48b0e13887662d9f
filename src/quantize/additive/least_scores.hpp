// Inner loops of the search for codes on the CPU: sums of rows of 16-bit tables and their minima, and subtraction of
// codewords.
//
// Cost per row and book of 256: 256 x books additions of 16 bits, and twice as many bytes read from the cache.
#pragma once

#include <cstdint>

namespace kith {

inline constexpr int64_t kMostScoredBooks = 256;
inline constexpr int64_t kMostScoredWords = 256;  // per book, since codes are bytes

struct ScoreTask {
  const int16_t* tables = nullptr;  // of the book: for each other book its rows, table_words x width; its own is zero
  int64_t end_book = 0;             // sums the books before it,
  int64_t skipped_book = -1;        // except this one
  int64_t table_words = 0;
  int64_t width = 0;                 // of a row of a table: a multiple of 32
  const int16_t* unary = nullptr;    // of the block's rows, `width` each
  const int16_t* windows = nullptr;  // of the block's rows
  const uint8_t* codes = nullptr;    // of the block's rows, `books` each
  int64_t books = 0;
};

// For each listed row the code with the smallest sum. If other codes are within the row's window of it, all of them go
// to `doubtful` and their number to counts[i], which is 1 otherwise. `doubtful`: kMostScoredWords per listed row.
void least_scores_cpu(const ScoreTask& task, const uint32_t* rows, int64_t count, uint8_t* codes, uint16_t* counts,
                      uint32_t* doubtful);

// The row minus `count` others; exact on the grid, so that their order does not matter.
void subtract_rows_cpu(const float* row, const float* const* others, int64_t count, int64_t cols, float* out);

}  // namespace kith
