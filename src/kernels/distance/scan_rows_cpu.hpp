// Fast f32 distances from one query to every row of a matrix, in place, on the CPU, for choosing candidates.
#pragma once

#include <kith/view.hpp>

#include "kernels/distance/canonical.hpp"

#include <cstdint>

namespace kith {

// Fills `values`, and `bound_sums` with what the error bound needs beside them. The order of operations is unspecified;
// errors are within error_bound.hpp:
//   l2, squared_l2          values = sum (q - x)^2
//   inner_product, cosine   values = sum q x, bound_sums = sum x x
//   l1                      values = sum |q - x|
//   linf                    values = max |q - x|, bound_sums = sum |q - x|
//   chi_square              values = sum (q - x)^2 / (q + x); no value is below zero
//   hamming                 values = the bits that differ (both hold whole numbers below 256), exactly
// A row with a NaN or an infinity gives a value, or for linf a sum, that is not finite. `bound_sums` may be null for
// the kinds without any, and for products if already known: they depend on the row alone.
void scan_rows_cpu(KeyKind kind, const float* query, const MatrixView& base, float* values, float* bound_sums);

// The same of few rows near each other: sums of (q - x)^2 of row first + i for each bit i of `places`, one after the
// other.
void scan_differences_cpu(const float* query, const MatrixView& base, int64_t first, uint64_t places, float* values);
// Sums of q x as values and of x x as bound_sums, of the same rows.
void scan_products_cpu(const float* query, const MatrixView& base, int64_t first, uint64_t places, float* values,
                       float* bound_sums);

// The bits in which each row of bytes differs from the query: hamming's values, eight words at a time where
// CpuExtensions::vpopcnt is.
void scan_bits_vpopcnt(const uint8_t* query, const MatrixView& base, float* values);

// Rows of bytes, u8 or i8, and a query of the same dtype and columns: l2 and squared_l2 as above; inner_product and
// cosine with the products times `scale`. Only if the processor has instructions for it.
#if defined(__aarch64__)
inline constexpr int64_t kFewestDotColumns = 16;  // one vector; the last load overlaps the one before
#else
inline constexpr int64_t kFewestDotColumns = 24;  // shorter rows are faster transposed
#endif
inline constexpr int64_t kMostDotColumns = 4096;
bool has_byte_scan();
void scan_byte_rows_cpu(KeyKind kind, const uint8_t* query, float scale, const MatrixView& base, float* values,
                        float* bound_sums);

// Rows side by side: value c of row i at c * kColumnRows + i, zeros past the last row. A vector holds as many rows, so
// that short ones need no sums across it.
inline constexpr int64_t kColumnRows = 256;
inline constexpr int64_t kMostColumnsSideBySide = 32;  // longer rows are not transposed
// Rows of up to this many columns always are, also for one query: vectors along the columns would be mostly empty.
#if defined(__aarch64__)
inline constexpr int64_t kAlwaysSideBySide = 5;
#else
inline constexpr int64_t kAlwaysSideBySide = 16;
#endif
struct ScannedColumns {
  const float* values = nullptr;
  int64_t cols = 0;
  int64_t rows = 0;  // at most kColumnRows
};

// Scans transposed rows; not hamming. `values` and `bound_sums` have kColumnRows entries.
void scan_columns_cpu(KeyKind kind, const float* query, const ScannedColumns& base, float* values, float* bound_sums);

// The sums of a scan of bytes, shared by the files of the instruction families.
enum class DotKind : uint8_t { differences, products, products_and_squares };

template <DotKind kKind>
struct DotTag {
  static constexpr DotKind kind = kKind;
};

// Calls use(DotTag<kind>()). Squares are the bound_sums of a row.
template <typename Use>
void visit_dots(KeyKind kind, const float* bound_sums, const Use& use) {
  if (has_differences(kind)) return use(DotTag<DotKind::differences>());
  if (bound_sums == nullptr) return use(DotTag<DotKind::products>());
  use(DotTag<DotKind::products_and_squares>());
}

}  // namespace kith
