// Product codes looked up in registers: sums of a query's byte tables (code_tables.hpp) for many vectors at a time.
// They are lower bounds, in steps; vectors whose sums stay below a limit are told, and nothing is said of their values.
//
//   4 bits  a table of 16 bytes is a shuffle's operand, on every CPU
//   8 bits  a table of 256 bytes is sixteen registers of NEON, eight lookups of two each, or four registers of AVX-512,
//           where VBMI looks up bytes in two, and others words; AVX2 looks up in one of sixteen bytes
//
// Codes lie vector by vector, and shuffles want the same byte of many vectors side by side: 64 vectors at a time are
// transposed, for all queries.
//
// Cost, a vector and query: on a Neoverse V1 about 3 cycles for 32 parts of 4 bits, half of it for four queries
// together, and up to 8 for 16 parts of 8 bits, half of it where most vectors are far; transposing 16 bytes takes two
// to three.
#pragma once

#include "core/cpu_extensions.hpp"
#include "core/divide.hpp"
#include "kernels/codes/code_format.hpp"

#include <bit>
#include <cstdint>

namespace kith {

inline constexpr int64_t kColumnVectors = 64;  // transposed together

// Whether codes of this format are looked up in registers on a CPU with these extensions.
bool has_code_screen(const CodeFormat& format, const CpuExtensions& cpu);

// Bytes of a query's tables: 4-bit parts are looked up in pairs, the last one, perhaps, with zeros.
constexpr int64_t screen_table_bytes(const CodeFormat& format) {
  return (format.bits == 4 ? round_up(format.parts, 2) : format.parts) * format.codewords();
}

// After how many parts a screen first looks whether few vectors are left, which are then told: earlier after blocks in
// which few were, later after others. All but VBMI's; it changes what is told beyond the limit, and the time.
struct ScreenLook {
  int64_t part = 0;  // 0: nothing is known yet
};

struct ScreenQuery {
  const uint8_t* tables = nullptr;
  uint16_t most = 0;
  uint32_t* rows = nullptr;  // those whose bytes add up to `most` or less; up to 64 more places are written
  int64_t found = 0;
  ScreenLook look = {};
};
void screen_codes(const CodeFormat& format, const uint8_t* codes, int64_t count, ScreenQuery* queries,
                  int64_t query_count);

// The sums themselves, in whole blocks of kColumnVectors.
void sum_codes(const CodeFormat& format, const uint8_t* codes, int64_t count, const uint8_t* tables, uint16_t* sums);

// Two steps of a screen, for several queries of a block: up to kColumnVectors codes as columns, of those `there` that lie
// from the first on, and a bit for each of its vectors whose bytes may add up to less than its number in `below`. A
// block has code_block_bytes().
constexpr int64_t code_block_bytes(const CodeFormat& format) { return kColumnVectors * format.bytes(); }
void transpose_codes(const CodeFormat& format, const uint8_t* codes, int64_t count, int64_t there, uint8_t* block);
using BlockScreen = uint64_t (*)(const CodeFormat& format, const uint8_t* block, const uint8_t* tables,
                                 const uint16_t* below, ScreenLook& look);
// The second step, for this processor: to ask for it takes as long as a block.
BlockScreen block_screen(const CodeFormat& format);
inline constexpr uint16_t kAboveAllSums = 0xFFFF;
// Such numbers for vectors whose bytes may add up to start + slope * term each: the least whole ones above that; where
// it is not a number, one above all sums.
void limits_of_terms(const float* terms, float start, float slope, int64_t count, uint16_t* below);

// Puts the numbers of set bits, from `first` on, behind those that were found; returns how many there are then.
inline int64_t tell_bits(uint64_t bits, int64_t first, uint32_t* rows, int64_t found) {
  for (; bits != 0; bits &= bits - 1) rows[found++] = static_cast<uint32_t>(first + std::countr_zero(bits));
  return found;
}

// The parts for 8 bits, of a block of 64 vectors whose bytes lie column by column: their sums, and a BlockScreen.
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
