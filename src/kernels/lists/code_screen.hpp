// Screens product codes by table lookups in registers: adds up entries of a query's byte tables (code_tables.hpp) for
// many vectors at a time. The sums are lower bounds in table steps; the screen reports which vectors are at or below a
// limit, not their sums.
//
//   4 bits  a table has 16 bytes: one shuffle, on every CPU
//   8 bits  a table has 256 bytes: sixteen NEON registers, read by eight two-register lookups, or four AVX-512
//           registers, read by two-register lookups of bytes with VBMI, of words without; AVX2 shuffles one of sixteen
//
// Codes are stored vector by vector, but a shuffle needs the same byte of many vectors: blocks of 64 vectors are
// transposed once for all queries.
//
// Cost per vector and query on a Neoverse V1: about 3 cycles for 32 parts of 4 bits, half with four queries together;
// up to 8 cycles for 16 parts of 8 bits, half if most vectors are far. Transposing 16 bytes takes two to three.
#pragma once

#include "core/cpu_extensions.hpp"
#include "core/divide.hpp"
#include "kernels/codes/code_format.hpp"

#include <bit>
#include <cstdint>

namespace kith {

inline constexpr int64_t kColumnVectors = 64;  // transposed together

// Whether there is a screen for codes of this format on a CPU with these extensions.
bool has_code_screen(const CodeFormat& format, const CpuExtensions& cpu);

// Bytes of a query's tables. 4-bit parts are looked up in pairs; an odd last one is paired with zeros.
constexpr int64_t screen_table_bytes(const CodeFormat& format) {
  return (format.bits == 4 ? round_up(format.parts, 2) : format.parts) * format.codewords();
}

// The part after which a screen first checks whether few candidates remain, and if so stops there and reports them all.
// Adapts from block to block. Affects only speed and how many vectors above the limit are reported. VBMI has no check.
struct ScreenLook {
  int64_t part = 0;  // 0: not chosen yet
};

struct ScreenQuery {
  const uint8_t* tables = nullptr;
  uint16_t most = 0;
  uint32_t* rows = nullptr;  // output: vectors with sums of `most` or less; needs room for 64 more
  int64_t found = 0;
  ScreenLook look = {};
};
void screen_codes(const CodeFormat& format, const uint8_t* codes, int64_t count, ScreenQuery* queries,
                  int64_t query_count);

// The sums themselves, in whole blocks of kColumnVectors.
void sum_codes(const CodeFormat& format, const uint8_t* codes, int64_t count, const uint8_t* tables, uint16_t* sums);

// The two steps of a screen, for several queries per block. transpose_codes() makes a block, of code_block_bytes(), of
// up to kColumnVectors codes; `there` codes can be read from the first on. A BlockScreen returns a bit for each vector
// whose sum may be less than its entry of `below`.
constexpr int64_t code_block_bytes(const CodeFormat& format) { return kColumnVectors * format.bytes(); }
void transpose_codes(const CodeFormat& format, const uint8_t* codes, int64_t count, int64_t there, uint8_t* block);
using BlockScreen = uint64_t (*)(const CodeFormat& format, const uint8_t* block, const uint8_t* tables,
                                 const uint16_t* below, ScreenLook& look);
// The one for this processor. Look it up once: the lookup takes as long as screening a block.
BlockScreen block_screen(const CodeFormat& format);
inline constexpr uint16_t kAboveAllSums = 0xFFFF;
// Fills `below` for vectors whose sums may be up to start + slope * term: the smallest integers above that, or
// kAboveAllSums for a NaN.
void limits_of_terms(const float* terms, float start, float slope, int64_t count, uint16_t* below);

// Appends first + i for each set bit i to the `found` rows; returns the new count.
inline int64_t tell_bits(uint64_t bits, int64_t first, uint32_t* rows, int64_t found) {
  for (; bits != 0; bits &= bits - 1) rows[found++] = static_cast<uint32_t>(first + std::countr_zero(bits));
  return found;
}

// 8-bit codes, on a transposed block of 64 vectors: sum_… stores the sums, screen_… is a BlockScreen.
void sum_byte_columns_vbmi(int64_t parts, const uint8_t* block, const uint8_t* tables, uint16_t* sums);
uint64_t screen_byte_columns_vbmi(int64_t parts, const uint8_t* block, const uint8_t* tables, const uint16_t* below);
void sum_byte_columns_avx512(int64_t parts, const uint8_t* block, const uint8_t* tables, uint16_t* sums);
uint64_t screen_byte_columns_avx512(int64_t parts, const uint8_t* block, const uint8_t* tables, const uint16_t* below,
                                    ScreenLook& look);
void sum_byte_columns_avx2(int64_t parts, const uint8_t* block, const uint8_t* tables, uint16_t* sums);
uint64_t screen_byte_columns_avx2(int64_t parts, const uint8_t* block, const uint8_t* tables, const uint16_t* below,
                                  ScreenLook& look);
void sum_byte_columns_neon(int64_t parts, const uint8_t* block, const uint8_t* tables, uint16_t* sums);
uint64_t screen_byte_columns_neon(int64_t parts, const uint8_t* block, const uint8_t* tables, const uint16_t* below,
                                  ScreenLook& look);

}  // namespace kith
