// A blocked matrix product of bytes, exact in 32-bit integers, that never writes its result: each value is compared
// with a limit for its query, and only those at or below it are handed out.
//
//   value(q, x) = term(x) - scale * q' x'     scale 2 with term |x|^2 for L2, scale 1 for the inner product
//
// A canonical sum of bytes is an integer below 2^31, exact in any order; it is rounded once. So the key that is
// reported follows from the value alone, and there is no error to bound and nothing to compute again.
//
// x86's VNNI multiplies unsigned by signed bytes. Where a panel_shape has signed_bytes, u8 rows are stored less 128 and
// i8 queries with 128 added, and byte_query_offset() and byte_row_term() account for it.
//
// Cost: 2 operations for each query, row and column, at 4 (VNNI, DOTPROD) to 16 (AMX) times the rate of f32; at 1.4
// times where an x86 processor has none of these.
#pragma once

#include "core/half.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/panels/panel_format.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kith {

// Packed bytes and bits, as the scans over them take them.
struct BytePanelBase {
  const void* panels = nullptr;
  const int32_t* terms = nullptr;  // one for each row
  PanelFormat format = PanelFormat::u8;
  int64_t cols = 0;
  int scale = 2;
};

// A value passes that is within its query's limit or, where rows have limits too, within the largest of its panel's
// rows: these are of sums, which exceed a query's values by its offset, and at most kLargestRowLimit either way.
struct BytePanelQueries {
  const void* panels = nullptr;
  int64_t count = 0;
  int32_t* limits = nullptr;            // on_hit may lower them; padded to whole panels
  const int32_t* row_limits = nullptr;  // of each panel of rows; none: rows have none
  const int32_t* offsets = nullptr;     // then of each query, padded as limits are

  int32_t limit(int64_t query, int64_t panel) const {
    return row_limits == nullptr ? limits[query] : std::max(limits[query], row_limits[panel] - offsets[query]);
  }
};

// Beyond every sum, and so small that no difference from an offset overflows.
inline constexpr int32_t kLargestRowLimit = 1 << 30;
static_assert(kMostByteColumns * 255 * 256 <= kLargestRowLimit);

// What limits may be: the first lets nothing pass.
inline constexpr int32_t kSmallestLimit = -0x7FFFFFFF;
inline constexpr int32_t kLargestLimit = 0x7FFFFFFF;

// Called for a query and a panel in which some value passed; bit i of `passed` stands for row i, values has
// rows_per_panel entries. Rows that only fill up a panel may pass.
class BytePanelHits {
 public:
  virtual ~BytePanelHits() = default;
  virtual void on_hit(int64_t query, int64_t panel, uint64_t passed, const int32_t* values) = 0;
};

// One vector of bytes as stored for the set in use, filled up with zeros to `padded` bytes.
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

// Whether vectors of so many bytes are multiplied with these extensions. Without them x86 takes fewer columns, widened
// to words.
inline constexpr int64_t kMostWordColumns = 1024;
bool has_byte_product(int64_t cols, const CpuExtensions& cpu);

void scan_byte_panels(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                      BytePanelHits& hits);

// The families: each exists where its instructions can be compiled.
void scan_bytes_dotprod(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                        BytePanelHits& hits);
void scan_bytes_vnni(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                     BytePanelHits& hits);
PanelShape word_panel_shape();
void scan_bytes_words(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                      BytePanelHits& hits);
void scan_bytes_amx(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                    BytePanelHits& hits);

// Bits that differ between packed bytes: the tiles of byte_product.hpp with a count in place of a product.
//
// Rows are packed byte by byte, so that a vector holds one byte of each of its rows and counts of a row's bytes are
// added up where they stand. A byte holds the count of 31 of them; longer rows go on in 32 bits. One query alone has
// tiles of its own.
// Cost: three operations for each query, column and vector of rows.

// The base's terms are not looked at: rows that only fill up a panel may pass.

// Keys of exact sums of bytes, and the sums that a key allows.
//
// The lanes of a canonical sum of bytes hold the same integers as any other order of adding them: the key follows from
// the sum alone.
inline float key_of_sum(KeyKind kind, int32_t sum) {
  return kind == KeyKind::l2 ? static_cast<float>(std::sqrt(static_cast<double>(sum))) : static_cast<float>(sum);
}

// The largest sum whose key is not above the limit, or one that no pair has.
inline int32_t largest_sum(KeyKind kind, float limit) {
  if (!(limit < static_cast<float>(kLargestLimit))) return kLargestLimit;
  const int64_t least = kind == KeyKind::inner_product ? kSmallestLimit : -1;  // not above, or below every sum
  if (kind != KeyKind::inner_product && limit < 0) return -1;
  if (limit < static_cast<float>(kSmallestLimit)) return kSmallestLimit;
  // A key is its sum, or the root of it, rounded once: it is the limit up to half way to the next float.
  const float next = float_of_bits(limit == 0 ? 1u : bits_of_float(limit) + (limit < 0 ? -1 : 1));
  const double middle = 0.5 * (static_cast<double>(limit) + static_cast<double>(next));
  // For roots that is all: a square of at most 25 bits is exact in float64, and where it lies half way between floats
  // below 2^16 it is no whole number, and further from one than a root in float64 is from the root.
  if (kind == KeyKind::l2) return static_cast<int32_t>(std::min(middle * middle, static_cast<double>(kLargestLimit)));
  // A sum that lies there itself is rounded to the even one.
  auto sum = static_cast<int64_t>(std::clamp(std::floor(middle), static_cast<double>(least), 2147483647.0));
  while (sum > least && key_of_sum(kind, static_cast<int32_t>(sum)) > limit) --sum;
  return static_cast<int32_t>(sum);
}

}  // namespace kith
