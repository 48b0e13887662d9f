// Products of a list's vectors and queries on matrix units, each rounded to bf16 once: AMX's tiles on x86-64, BFMMLA on
// ARM.
//
// A list is decoded for few queries at a time, so that packing counts as much as multiplying: vectors are rounded to
// their nearest bf16 and no more, at half the bytes and a third of the products of bf16 in two parts (kernels/panels).
// How far rounding has moved each vector is measured, which makes the bounds tighter than those of the worst case. The
// vectors that are near enough, a few in a hundred more than asked for, are scored exactly by whoever asked.
//
//   AMX     panels of 32 rows side by side, unit by unit of two columns, as PanelFormat::bf16's high parts; queries lie
//           row by row. A block of 32 x 32 takes cols / 32 steps of four products of 16 cycles
//   BFMMLA  four columns of two rows are an operand: panels of 12 rows and of 8 queries hold these pairs side by side.
//           A block of 8 x 12 takes cols / 4 steps of 24 products, of which a core starts two to four each cycle
#pragma once

#include "core/cpu_extensions.hpp"
#include "kernels/codes/code_format.hpp"
#include "kernels/lists/list_hits.hpp"

#include <cstdint>

namespace kith {

#if defined(__aarch64__)
inline constexpr int64_t kTileRows = 12;    // of a panel
inline constexpr int64_t kTileQueries = 8;  // of a panel of queries
#else
inline constexpr int64_t kTileRows = 32;
inline constexpr int64_t kTileQueries = 32;
#endif
static_assert(kHitQueries % kTileQueries == 0);

// Whether a CPU has the instructions.
constexpr bool has_list_tiles(const CpuExtensions& cpu) { return cpu.amx || cpu.mmla; }

// Words of four bytes that a vector takes, filled up for equal steps.
int64_t tile_words(int64_t cols);

// Sums over one vector, in f32 lanes: of its squares, and of those of what rounding has taken.
struct RoundedSums {
  float squares = 0;
  float errors = 0;
};

// (vector - origin) * scale as bf16. `origin` may be null; the sums are of the vector before it is scaled, which must
// be by a power of two.
RoundedSums round_to_tile_words(const float* vector, const float* origin, float scale, int64_t cols, uint32_t* words);

// Up to kTileRows or kTileQueries vectors of so many words, one after the other, as a panel; those beyond count as
// zeros.
void place_tile_rows(const uint32_t* vectors, int64_t count, int64_t words, uint32_t* panel);
void place_tile_queries(const uint32_t* vectors, int64_t count, int64_t words, uint32_t* panel);

// Codewords rounded ahead: parts x 2^bits x part_cols bf16, and the squares of each.
struct RoundedWords {
  const uint16_t* values = nullptr;
  const float* squares = nullptr;
};
// Vectors of product codes, put together from them: `count` rows of words (zeros behind the last column) and their
// squares.
void gather_tile_words(const CodeFormat& format, const RoundedWords& rounded, const uint8_t* codes, int64_t count,
                       int64_t words, uint32_t* vectors, float* squares);

// value(q, x) = terms[x] + q x for up to kHitQueries queries and panels of `rows` rows; values not above a query's
// limit become hits. An infinite limit or one that is no number lets all pass.
struct TileScan {
  const uint32_t* queries = nullptr;  // whole panels
  int64_t query_count = 0;
  const uint32_t* panels = nullptr;
  const float* terms = nullptr;  // whole panels
  int64_t rows = 0;
  int64_t cols = 0;
  const float* limits = nullptr;  // kHitQueries
};
void scan_list_tiles(const TileScan& scan, ListHits& hits);

}  // namespace kith
