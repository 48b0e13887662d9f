// How vectors are packed for a matrix product, and which product multiplies them best on this machine.
//
// Packed vectors are made of units of 4 bytes: one f32, two bf16 or four bytes of consecutive columns; bits are packed
// byte by byte. A panel holds `rows_per_panel` rows side by side, unit by unit (panel_packing.hpp), so that a step of a
// kernel loads whole vectors of rows. Queries are packed likewise, or row by row where tiles multiply them. Columns are
// filled up with zeros to whole units, and for tiles to equal steps of at most 64 bytes.
//
//   f32       any values, 4 bytes each                     every CPU           within error_bound.hpp
//   screened  the same, beside a byte each that rules      DOTPROD, VNNI       within error_bound.hpp
//             most rows out first (rounded_panels.hpp)
//   bf16      f32 as a sum of two bf16, 4 bytes together   AMX                 within error_bound.hpp
//   u8, i8    bytes as they are                            DOTPROD, VNNI, AMX  exact
//   bits      bytes that are compared bit by bit           every CPU           exact
#pragma once

#include <kith/dtype.hpp>

#include "core/cpu_target.hpp"
#include "kernels/distance/canonical.hpp"

#include <cstdint>

namespace kith {

enum class PanelFormat : uint8_t { f32, screened, bf16, u8, i8, bits };

constexpr bool holds_f32(PanelFormat format) { return format <= PanelFormat::screened; }
constexpr bool holds_bytes(PanelFormat format) { return format >= PanelFormat::u8; }

// Sums of so many columns of bytes, and all that they are made of, fit 32 bits.
inline constexpr int64_t kMostByteColumns = 16384;

// For queries and a base of these types on a CPU with these extensions.
PanelFormat choose_panel_format(KeyKind kind, DType queries, DType base, int64_t cols, const CpuExtensions& cpu);

struct PanelShape {
  int64_t rows_per_panel = 0;
  int64_t queries_per_panel = 0;
  bool query_rows = false;    // queries lie row by row
  bool signed_bytes = false;  // the kernel multiplies unsigned bytes of queries by signed ones of rows
};

// For the instruction set in use.
PanelShape panel_shape(PanelFormat format);
// Where dot products multiply bytes. That of f32 is as large, so that a panel has the same rows in a screen.
PanelShape byte_panel_shape();

inline constexpr int64_t kMostQueriesPerPanel = 32;
inline constexpr int64_t kMostRowsPerPanel = 64;

// Columns multiplied in one step of a tile, and all of them, filled up. Not of bits.
int64_t columns_per_step(PanelFormat format, int64_t cols);
int64_t padded_columns(PanelFormat format, int64_t cols);
// Units of one part of a vector, its parts (two of bf16), and the bytes of all.
int64_t units_per_part(PanelFormat format, int64_t cols);
constexpr int64_t parts_of(PanelFormat format) { return format == PanelFormat::bf16 ? 2 : 1; }
int64_t packed_bytes(PanelFormat format, int64_t cols);
// What is beside it: a screen.
int64_t screen_bytes(PanelFormat format, int64_t cols);

// values * scale as units of the format, f32 (screened or not) or bf16 (both parts, one after the other).
void encode_floats(PanelFormat format, const float* values, int64_t cols, float scale, uint32_t* out);

}  // namespace kith
