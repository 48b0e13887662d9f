// A blocked matrix product of bytes, exact in 32-bit integers, that never writes its result: each value is compared
// with a limit for its query, and only those at or below it are handed out.
//
//   value(q, x) = term(x) - scale * q' x'     scale 2 with term |x|^2 for L2, scale 1 for the inner product
//
// A canonical sum of bytes is an integer below 2^31, exact in any order, and rounded once. So the reported key follows
// from the value alone: there is no error to bound and nothing to recompute.
//
// x86's VNNI multiplies unsigned by signed bytes. Where a panel_shape has signed_bytes, u8 rows are stored minus 128
// and i8 queries with 128 added, and byte_query_offset() and byte_row_term() account for it.
//
// Cost: 2 operations per query, row and column, at 4 (VNNI, DOTPROD) to 16 (AMX) times the rate of f32; 1.4 times on
// x86 without any of these.
#pragma once

#include "core/half.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/panels/panel_format.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kith {

// Packed bytes and bits, the input of scans.
struct BytePanelBase {
  const void* panels = nullptr;
  const int32_t* terms = nullptr;  // one per row
  PanelFormat format = PanelFormat::u8;
  int64_t cols = 0;
  int scale = 2;
};

// A value passes if it is within its query's limit or, if rows have limits too, within the largest of its panel's rows.
// Row limits are limits of sums (value + the query's offset), in absolute value at most kLargestRowLimit.
struct BytePanelQueries {
  const void* panels = nullptr;
  int64_t count = 0;
  int32_t* limits = nullptr;            // on_hit may lower them; padded to whole panels
  const int32_t* row_limits = nullptr;  // per panel of rows; null: rows have no limits
  const int32_t* offsets = nullptr;     // per query, padded like the limits; with row limits only

  int32_t limit(int64_t query, int64_t panel) const {
    return row_limits == nullptr ? limits[query] : std::max(limits[query], row_limits[panel] - offsets[query]);
  }
};

// Larger than every sum, yet its difference from an offset does not overflow.
inline constexpr int32_t kLargestRowLimit = 1 << 30;
static_assert(kMostByteColumns * 255 * 256 <= kLargestRowLimit);

// The range of limits; nothing passes the smallest.
inline constexpr int32_t kSmallestLimit = -0x7FFFFFFF;
inline constexpr int32_t kLargestLimit = 0x7FFFFFFF;

// Called for a query and a panel in which some value passed; bit i of `passed` stands for row i, values has
// rows_per_panel entries. Rows that only fill up a panel may pass.
class BytePanelHits {
 public:
  virtual ~BytePanelHits() = default;
  virtual void on_hit(int64_t query, int64_t panel, uint64_t passed, const int32_t* values) = 0;
};

// Packs one vector of bytes for the kernel in use, padded with zeros to `padded` bytes.
void encode_byte_row(PanelFormat format, const PanelShape& shape, const uint8_t* row, int64_t cols, int64_t padded,
                     uint8_t* out);
void encode_byte_query(PanelFormat format, const PanelShape& shape, const float* query, int64_t cols, int64_t padded,
                       uint8_t* out);

// The sums of a vector's bytes.
struct ByteSums {
  int32_t sum = 0;
  int32_t squares = 0;
};
ByteSums byte_sums(PanelFormat format, const uint8_t* row, int64_t cols);
int32_t byte_row_term(PanelFormat format, const PanelShape& shape, KeyKind kind, const ByteSums& row);
// The exact sum of a pair (of squared differences, or the negative product) is value + offset.
int32_t byte_query_offset(PanelFormat format, const PanelShape& shape, KeyKind kind, const ByteSums& query);

// Whether vectors of this many bytes can be multiplied with these extensions. Without them, x86 widens bytes to words,
// which limits the columns.
inline constexpr int64_t kMostWordColumns = 1024;
bool has_byte_product(int64_t cols, const CpuExtensions& cpu);

void scan_byte_panels(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                      BytePanelHits& hits);

// One per instruction family, where the compiler supports it.
void scan_bytes_dotprod(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                        BytePanelHits& hits);
void scan_bytes_vnni(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                     BytePanelHits& hits);
PanelShape word_panel_shape();
void scan_bytes_words(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                      BytePanelHits& hits);
void scan_bytes_amx(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                    BytePanelHits& hits);

// Hamming distance of packed bits: the tiles of a byte product with a popcount in place of the product.
//
// Rows are packed byte by byte, so that a SIMD vector holds one byte of each row and counts are added in place. A byte
// holds the counts of 31 bytes; longer rows continue in 32 bits. A single query has its own
// tiles.
// Cost: three operations per query, column and SIMD vector of rows.

// Ignores the base's terms: padding rows may pass.

// Keys from exact sums of bytes, and back: the largest sum for a key.
//
// A sum of bytes is the same integer in any order, so the canonical key follows from the sum alone.
inline float key_of_sum(KeyKind kind, int32_t sum) {
  return kind == KeyKind::l2 ? static_cast<float>(std::sqrt(static_cast<double>(sum))) : static_cast<float>(sum);
}

// The largest sum whose key is not above the limit; if there is none, a sum that no pair has.
inline int32_t largest_sum(KeyKind kind, float limit) {
  if (!(limit < static_cast<float>(kLargestLimit))) return kLargestLimit;
  const int64_t least = kind == KeyKind::inner_product ? kSmallestLimit : -1;  // not above, or below every sum
  if (kind != KeyKind::inner_product && limit < 0) return -1;
  if (limit < static_cast<float>(kSmallestLimit)) return kSmallestLimit;
  // A key is the sum or its root, rounded once: it rounds to the limit up to the midpoint to the next float.
  const float next = float_of_bits(limit == 0 ? 1u : bits_of_float(limit) + (limit < 0 ? -1 : 1));
  const double middle = 0.5 * (static_cast<double>(limit) + static_cast<double>(next));
  // For roots that suffices: the midpoint has at most 25 bits, so its square is exact in float64. Squares of midpoints
  // below 2^16 are not integers, and farther from one than the rounding error of a float64 root.
  if (kind == KeyKind::l2) return static_cast<int32_t>(std::min(middle * middle, static_cast<double>(kLargestLimit)));
  // A sum at the midpoint itself rounds to the even float.
  auto sum = static_cast<int64_t>(std::clamp(std::floor(middle), static_cast<double>(least), 2147483647.0));
  while (sum > least && key_of_sum(kind, static_cast<int32_t>(sum)) > limit) --sum;
  return static_cast<int32_t>(sum);
}

}  // namespace kith
