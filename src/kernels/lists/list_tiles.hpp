// Products of a list's vectors and queries on matrix units, both rounded to a single bf16: AMX tiles on x86-64, BFMMLA
// on ARM.
//
// Each decoded list meets few queries, so packing costs as much as multiplying. A single bf16 takes half the bytes and
// a third of the products of the two-part bf16 of kernels/panels. The rounding error of each vector is measured, which
// gives tighter bounds than the worst case. The caller computes exact scores of the vectors within the bound, a few
// percent more than it asked for.
//
//   AMX     panels of 32 rows, interleaved by units of two columns, like the high parts of PanelFormat::bf16; queries
//           are row-major. A 32 x 32 block takes cols / 32 steps of four products of 16 cycles
//   BFMMLA  an operand is four columns of two rows; panels of 12 rows and of 8 queries interleave these pairs. A block
//           of 8 x 12 takes cols / 4 steps of 24 products, of which a core starts two to four per cycle
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

// 4-byte words per vector, padded to whole steps.
int64_t tile_words(int64_t cols);

// Sums over one vector, in f32 lanes: its squared norm and its squared rounding error.
struct RoundedSums {
  float squares = 0;
  float errors = 0;
};

// (vector - origin) * scale as bf16. `origin` may be null; `scale` is a power of two, and the sums are those of the
// unscaled vector.
RoundedSums round_to_tile_words(const float* vector, const float* origin, float scale, int64_t cols, uint32_t* words);

// Packs up to kTileRows or kTileQueries contiguous vectors of `words` words into a panel; missing ones become
// zeros.
void place_tile_rows(const uint32_t* vectors, int64_t count, int64_t words, uint32_t* panel);
void place_tile_queries(const uint32_t* vectors, int64_t count, int64_t words, uint32_t* panel);

// Codewords rounded in advance: parts x 2^bits x part_cols bf16, and their squared norms.
struct RoundedWords {
  const uint16_t* values = nullptr;
  const float* squares = nullptr;
};
// Decodes product codes with them: `count` rows, padded with zeros after the last column, and their squared
// norms.
void gather_tile_words(const CodeFormat& format, const RoundedWords& rounded, const uint8_t* codes, int64_t count,
                       int64_t words, uint32_t* vectors, float* squares);

// value(q, x) = terms[x] + q x for up to kHitQueries queries and panels of `rows` rows; values up to a query's limit
// become hits. All pass an infinite or NaN limit.
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
