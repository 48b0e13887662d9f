// Weighted sums of stored bytes: compares vectors of one byte per column with few queries per list at the speed of
// memory, since nothing is decoded or packed.
//
//   value(x) = term(x) + scale(x) * (constant + step * sum of weight * (byte - zero))
//
// Weights are integers of up to 15 bits, so 32-bit sums are exact; the rounding error of the weights is measured. A row
// is dropped if its lower bound, value - tilt * spread(x), is above the query's limit; all others are
// reported.
//
//   DOTPROD, VNNI, AVX2  weights in two byte planes, 128 * high + low: 16 to 64 products per instruction. The high
//                        plane alone, which is off by at most |low| |byte - zero|, drops most rows
//   others               16-bit weights, by Highway
//
// Cost per vector and query on a Neoverse V1, bytes in cache: about 9 cycles for 128 columns, 5 with four queries
// together.
#pragma once

#include "core/divide.hpp"
#include "kernels/panels/instruction_family.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

inline constexpr int64_t kFewestWeightColumns = 16;  // the last SIMD vector of a row overlaps the one before
inline constexpr int64_t kMostWeightColumns = 1 << 15;

// Bytes of a query's weights.
constexpr int64_t weight_bytes(int64_t cols) { return 2 * round_up(cols, kFewestWeightColumns); }
// The largest weight for which sums of weight * byte fit 32 bits.
constexpr int32_t largest_weight(int64_t cols) {
  return static_cast<int32_t>(std::min<int64_t>(127 * 128, INT32_MAX / (256 * cols) - 1));
}
// The same if the sum of two products of a plane and a byte must fit 16 bits.
inline constexpr int32_t kNarrowWeight = 64 * 128;

// One query's weights, in the layout of the kernel in use.
struct ByteWeights {
  const void* weights = nullptr;
  int32_t sum = 0;       // of all weights
  int32_t high_sum = 0;  // of the high plane
  float step = 0;        // the value of a weight of 1
  double moved_by = 0;   // upper bound of the rounding error's norm
  double low = 0;        // the norm of the low plane
};
// Rounds `cols` finite values. A last, partial group of kFewestWeightColumns is padded with zeros at its front
// (weight_place). `out` has weight_bytes().
ByteWeights round_weights(const float* values, int64_t cols, void* out);
// The place of a column's weight.
constexpr int64_t weight_place(int64_t column, int64_t cols) {
  const int64_t whole = cols / kFewestWeightColumns * kFewestWeightColumns;
  return column < whole ? column : column + kFewestWeightColumns - (cols - whole);
}

// Whether the kernel reads rows of values of this many bits directly, without unpacking. There are then
// packed_weight_columns() weights, padded with zeros; that of a column is at packed_weight_place().
bool takes_packed_rows(int bits, int64_t cols);
// The order of values in a SIMD vector unpacked from `groups` groups of `together` values, each group whole bytes.
struct PackedOrder {
  int64_t together = 0;
  int64_t groups = 0;
  bool planes = true;  // the first value of every group, then the second, ...; else by group, neighbours swapped
};
constexpr PackedOrder packed_order(int bits) {
  if (bits == 4) return {2, 16, true};
#if defined(KITH_X86)
  return {4, 4, false};
#else
  return {4, 16, true};
#endif
}
constexpr int64_t packed_values(int bits) { return packed_order(bits).groups * packed_order(bits).together; }
constexpr int64_t packed_step(int bits) { return packed_values(bits) * bits / 8; }  // bytes per SIMD vector
constexpr int64_t packed_weight_columns(int bits, int64_t cols) {
  return divide_up(cols * bits / 8, packed_step(bits)) * packed_values(bits);
}
constexpr int64_t packed_weight_place(int64_t column, int bits, int64_t cols) {
  const auto [together, groups, planes] = packed_order(bits);
  const int64_t all = cols / together;
  const int64_t last = divide_up(all, groups) - 1;  // the last vector ends with the row
  const int64_t of = column / together;
  const int64_t vector = std::min(of / groups, last);
  const int64_t group = vector < last ? of % groups : of - (all - groups);
  const int64_t value = column % together;
  return vector * packed_values(bits) + (planes ? value * groups + group : (group * together + value) ^ 1);
}

struct ByteRows {
  const uint8_t* bytes = nullptr;
  int64_t stride = 0;  // in bytes; that of the packed row, if packed
  int64_t count = 0;
  int64_t cols = 0;    // or packed_weight_columns()
  int32_t zero = 128;  // the byte that represents 0
  float longest = 0;   // upper bound of the norm of every row's (byte - zero)
  // One per row; null means a term of 0, a scale of 1, a spread of 0.
  const float* terms = nullptr;
  const float* scales = nullptr;
  const float* spreads = nullptr;
  int bits = 8;  // per value
};

struct ByteRowsQuery {
  ByteWeights weights;
  float constant = 0;
  float factor = 0;  // multiplies the sums: the step with its sign and all other factors
  float limit = 0;   // infinite or NaN: all rows pass
  float tilt = 0;
  // Output: the values and numbers of the `found` rows that passed; needs room for sixteen more.
  float* values = nullptr;
  uint32_t* numbers = nullptr;
  int64_t found = 0;
};

// What a two-plane kernel adds to its sums of weight * value, if it treats the value `zero` as 0. rough_constant is the
// constant for the high plane alone, lowered by the low plane's largest sum and by rounding to f32.
struct PlaneTerms {
  int32_t high_shift = 0;
  int32_t low_shift = 0;
  float rough_constant = 0;
};
PlaneTerms plane_terms(const ByteRows& rows, const ByteRowsQuery& query, int32_t zero);

// Appends the rows that pass to each query's found rows; rows are numbered from `first` on.
using WeightedBytesScan = void(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count);
// The one for this processor: look it up once for many calls.
WeightedBytesScan* weighted_bytes_scan();
inline void scan_weighted_bytes(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  weighted_bytes_scan()(rows, first, queries, query_count);
}

// Whether the kernel in use loads each row once for this many queries; otherwise it passes over all rows once per
// query.
bool shares_weighted_rows(int64_t query_count, int64_t cols);
inline constexpr int64_t kFewestForPanels = 3;     // fewest queries for which VNNI does
inline constexpr int64_t kMostPanelColumns = 512;  // and most columns

// One per instruction family: ARM with dotprod, ARM with mmla too, x86 with VNNI, x86 with AVX2.
WeightedBytesScan scan_weighted_bytes_dotprod;
WeightedBytesScan scan_weighted_bytes_mmla;
WeightedBytesScan scan_weighted_bytes_vnni;
WeightedBytesScan scan_weighted_bytes_avx2;

}  // namespace kith
