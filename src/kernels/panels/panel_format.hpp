// How vectors are packed for a matrix product, and which product multiplies them best on a CPU.
//
// Packed vectors are made of units of 4 bytes: one f32, two bf16 or four bytes of consecutive columns; bits are packed
// byte by byte. A panel holds `rows_per_panel` rows side by side, unit by unit (panel_packing.hpp), so that a step of a
// kernel loads whole vectors of rows. Queries are packed likewise, or row by row where tiles multiply them. Columns are
// filled up with zeros to whole units, and for tiles to equal steps of at most 64 bytes.
//
//   f32       any values, 4 bytes each                     every CPU           within error_bound.hpp
//   screened  the same, beside a byte each that rules      DOTPROD, AVX2       within error_bound.hpp
//             most rows out first (rounded_panels.hpp)
//   rounded   that byte alone                              DOTPROD, AVX2       within rounded_panels.hpp
//   norms     nothing: for rows whose panels are made      every CPU
//             as they are needed: of f32 by each thread (panel_ring.hpp), of bf16 by all of them for all queries of a
//             batch (PackedRows::pack_known)
//   bf16      f32 as a sum of two bf16, 4 bytes together   AMX                 within error_bound.hpp
//   u8, i8    bytes as they are; graphs on every x86       DOTPROD, VNNI, AMX  exact
//   bits      bytes that are compared bit by bit           every CPU           exact
#pragma once

#include <kith/dtype.hpp>

#include "core/cpu_target.hpp"
#include "core/divide.hpp"
#include "kernels/distance/canonical.hpp"

#include <cstdint>

namespace kith {

enum class PanelFormat : uint8_t { f32, screened, rounded, norms, bf16, u8, i8, bits };

constexpr bool holds_f32(PanelFormat format) { return format <= PanelFormat::screened; }
constexpr bool holds_bytes(PanelFormat format) { return format >= PanelFormat::u8; }
constexpr bool has_screen(PanelFormat format) {
  return format == PanelFormat::screened || format == PanelFormat::rounded;
}

// Whether panels of such rows, f32 or bf16, are made as they are needed.
constexpr bool lacks_panels(PanelFormat format) {
  return format == PanelFormat::rounded || format == PanelFormat::norms;
}

// Sums of so many columns of bytes, and all that they are made of, fit 32 bits.
inline constexpr int64_t kMostByteColumns = 16384;
// The same of values rounded to bytes, also with 128 added to a query's.
inline constexpr int64_t kMostRoundedColumns = 1 << 16;
static_assert(kMostRoundedColumns * 255 * 127 <= INT32_MAX);

// Whether a CPU has the instructions that multiply rounded values: at four times the rate of f32 or, with AVX2, which
// takes three instructions for each product, at up to twice the rate.
constexpr bool has_rounded_product(const CpuExtensions& cpu) { return cpu.dotprod || cpu.vnni || cpu.avx2; }
constexpr bool has_fast_rounded_product(const CpuExtensions& cpu) { return cpu.dotprod || cpu.vnni; }
// Words of four bytes that a rounded vector takes.
constexpr int64_t rounded_words(int64_t cols) { return divide_up(cols, 4); }

// For queries and a base of these types on a CPU with these extensions.
PanelFormat choose_panel_format(KeyKind kind, DType queries, DType base, int64_t cols, const CpuExtensions& cpu);

// What an index keeps of so many rows for searches by `format`: panels of f32 or bf16 would take as much as the rows,
// and are made as they are needed, except where rows are narrow, for which that takes as long as their products, or
// few.
inline constexpr int64_t kFewestKeptRows = 2048;
PanelFormat kept_format(PanelFormat format, int64_t rows, int64_t cols, const CpuExtensions& cpu);
// Whether a base of that many rows that is prepared for searches by `format` has a screen, for few queries.
bool prepares_screen(PanelFormat format, int64_t cols, const CpuExtensions& cpu);

// The shape of panels of a format for an instruction set.
struct PanelShape {
  int64_t rows_per_panel = 0;
  int64_t queries_per_panel = 0;
  bool query_rows = false;    // queries lie row by row
  bool signed_bytes = false;  // the kernel multiplies unsigned bytes of queries by signed ones of rows
};

inline constexpr int64_t kMostQueriesPerPanel = 32;
inline constexpr int64_t kMostRowsPerPanel = 64;

// Columns multiplied in one step of a tile, and all of them, filled up. Not of bits.
int64_t columns_per_step(PanelFormat format, int64_t cols);
int64_t padded_columns(PanelFormat format, int64_t cols);
// Units of one part of a vector, its parts (two of bf16), and the bytes of all, without its screen.
int64_t units_per_part(PanelFormat format, int64_t cols);
constexpr int64_t parts_of(PanelFormat format) { return format == PanelFormat::bf16 ? 2 : 1; }
int64_t packed_bytes(PanelFormat format, int64_t cols);
// Bytes of its screen.
int64_t screen_bytes(PanelFormat format, int64_t cols);

// Where values are rounded to bytes panels are as large as those of f32: a panel has the same rows in a screen.
PanelShape panel_shape(PanelFormat format);

}  // namespace kith
