// Product codes looked up in registers: sums of a query's byte tables (code_tables.hpp) for many vectors at a time. They
// are lower bounds, in steps; vectors whose sums stay below a limit are told, and nothing is said of their values.
//
//   4 bits  a table of 16 bytes is a shuffle's operand, on every CPU                      screen_code_columns
//   8 bits  a table of 256 bytes is sixteen registers of NEON, four lookups of four each  screen_code_columns
//           or four registers of AVX-512, where VBMI looks up in two                      screen_codes_vbmi
//
// Codes lie vector by vector; shuffles want the same byte of many vectors side by side. A piece of a list is transposed
// once for all queries, but by VBMI, which does it in registers.
//
// Cost, a vector and query: on a Neoverse V1 about 2 cycles for 32 parts of 4 bits and 6 for 16 of 8 bits; transposing
// 16 bytes takes one.
#pragma once

#include "core/cpu_extensions.hpp"
#include "core/divide.hpp"
#include "kernels/codes/code_format.hpp"

#include <cstdint>

namespace kith {

inline constexpr int64_t kColumnVectors = 64;  // transposed together

enum class CodeScreen : uint8_t {
  none,
  columns,  // screen_code_columns
  rows,     // screen_codes_vbmi
};
// For codes of this format on a CPU with these extensions.
CodeScreen choose_code_screen(const CodeFormat& format, const CpuExtensions& cpu);

// Of `count` codes as columns: the first byte of 64 vectors, their second byte, ... and so on for the next 64; any bytes
// behind the last.
constexpr int64_t code_columns_bytes(const CodeFormat& format, int64_t count) {
  return round_up(count, kColumnVectors) * format.bytes();
}
void transpose_codes(const CodeFormat& format, const uint8_t* codes, int64_t count, uint8_t* columns);

// Bytes of a query's tables: 4-bit parts are looked up in pairs, the last one, perhaps, with zeros.
constexpr int64_t screen_table_bytes(const CodeFormat& format) {
  return (format.bits == 4 ? round_up(format.parts, 2) : format.parts) * format.codewords();
}

struct ScreenQuery {
  const uint8_t* tables = nullptr;
  uint16_t most = 0;
  uint32_t* rows = nullptr;  // those whose bytes add up to `most` or less, ascending; up to 64 more places are written
  int64_t found = 0;
};
void screen_code_columns(const CodeFormat& format, const uint8_t* columns, int64_t count, ScreenQuery* queries,
                         int64_t query_count);

// The sums themselves.
void sum_code_columns(const CodeFormat& format, const uint8_t* columns, int64_t count, const uint8_t* tables,
                      uint16_t* sums);

// Rows whose bytes add up to `most` or less, in any order; up to 64 more places are written. Returns how many.
int64_t screen_codes_vbmi(const CodeFormat& format, const uint8_t* bytes, const uint8_t* codes, int64_t count,
                          uint16_t most, uint32_t* rows);

// The part of screen_code_columns and sum_code_columns for 8 bits on ARM: the sums of one block of 64 vectors.
void sum_byte_columns_neon(int64_t parts, const uint8_t* block, const uint8_t* tables, uint16_t* sums);

}  // namespace kith
