// Products of a list's vectors and queries on AMX's tiles, each rounded to bf16 once.
//
// A list is decoded for few queries at a time, so that packing counts as much as multiplying: vectors are rounded to
// their nearest bf16 and no more, at half the bytes and a third of the products of bf16 in two parts (kernels/panels).
// How far rounding has moved each vector is measured, which makes the bounds tighter than those of the worst case. The
// vectors that are near enough, a few in a hundred more than asked for, are scored exactly by whoever asked.
//
// Panels are those of PanelFormat::bf16's high parts: 32 rows side by side, unit by unit of two columns. Queries lie
// row by row. Cost: a block of 32 x 32 takes cols / 32 steps of four products of 16 cycles; packing a row some 40
// cycles for 128 columns.
#pragma once

#include "kernels/codes/code_format.hpp"
#include "kernels/lists/list_hits.hpp"

#include <cstdint>

namespace kith {

inline constexpr int64_t kTileRows = 32;  // of a panel, and queries of a group

// Words of four bytes that a vector takes, filled up for equal steps.
int64_t tile_words(int64_t cols);

// Sums over one vector, in f32 lanes: of its squares, and of those of what rounding has taken.
struct RoundedSums {
  float squares = 0;
  float errors = 0;
};

// (vector - origin) * scale as bf16. `origin` may be null; the sums are of the vector before it is scaled, which must
// be by a power of two.
RoundedSums round_vector_amx(const float* vector, const float* origin, float scale, int64_t cols, uint32_t* words);

// Up to 32 vectors of so many words, one after the other, as a panel; those beyond count as zeros.
void place_panel_amx(const uint32_t* vectors, int64_t count, int64_t words, uint32_t* panel);

// Codewords rounded ahead: parts x 2^bits x part_cols bf16, and the squares of each.
struct RoundedWords {
  const uint16_t* values = nullptr;
  const float* squares = nullptr;
};
// Vectors of product codes, put together from them: `count` rows of words (zeros behind the last column) and their
// squares.
void gather_words_amx(const CodeFormat& format, const RoundedWords& rounded, const uint8_t* codes, int64_t count,
                      int64_t words, uint32_t* vectors, float* squares);

// value(q, x) = terms[x] + q x for a group of up to 32 queries and panels of `rows` rows; values not above a query's
// limit become hits. An infinite limit or one that is no number lets all pass.
struct TileScan32 {
  const uint32_t* queries = nullptr;
  int64_t query_count = 0;
  const uint32_t* panels = nullptr;
  const float* terms = nullptr;  // whole panels
  int64_t rows = 0;
  int64_t cols = 0;
  const float* limits = nullptr;  // 32
};
void scan_tiles_amx(const TileScan32& scan, ListHits& hits);

}  // namespace kith
