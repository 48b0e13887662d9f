// Vectors of one byte a column, as they lie, against the weights of queries: what few queries of a list are compared
// by, at the speed of memory, since nothing is decoded or packed.
//
//   value(x) = term(x) + scale(x) * (constant + step * sum of weight * (byte - zero))
//
// Weights are whole numbers of up to 15 bits, so that sums are exact in 32; how far rounding has moved them is
// measured. A value whose lower bound, value - tilt * spread(x), is above the query's limit is dropped, any other is
// told.
//
//   DOTPROD, VNNI, AVX2  weights as two planes of bytes, 128 * high + low: sixteen to 64 products an instruction. The
//                        high plane alone, within |low| |byte - zero|, drops most rows
//   others               weights of 16 bits, by Highway
//
// Cost, a vector and query: about 9 cycles for 128 columns on a Neoverse V1 where the bytes are near, 5 for four
// queries together.
#pragma once

#include "core/divide.hpp"
#include "kernels/panels/instruction_family.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

inline constexpr int64_t kFewestWeightColumns = 16;  // the last vector of a row begins among the columns before it
inline constexpr int64_t kMostWeightColumns = 1 << 15;

// Bytes of a query's weights.
constexpr int64_t weight_bytes(int64_t cols) { return 2 * round_up(cols, kFewestWeightColumns); }
// The largest weight, with which sums of weights and bytes fit 32 bits.
constexpr int32_t largest_weight(int64_t cols) {
  return static_cast<int32_t>(std::min<int64_t>(127 * 128, INT32_MAX / (256 * cols) - 1));
}
// The same where two products of weights' planes and bytes must fit 16 bits.
inline constexpr int32_t kNarrowWeight = 64 * 128;

// One query's weights as the kernel in use takes them.
struct ByteWeights {
  const void* weights = nullptr;
  int32_t sum = 0;       // of all
  int32_t high_sum = 0;  // of the high plane
  float step = 0;        // of a weight
  double moved_by = 0;   // at least the length of what rounding has taken
  double low = 0;        // the length of the low plane
};
// Rounds `cols` finite values; those of the last columns, where these fill no vector of kFewestWeightColumns, are its
// last, and zeros come before them (weight_place). `out` has weight_bytes().
ByteWeights round_weights(const float* values, int64_t cols, void* out);
// Where a column's value lies.
constexpr int64_t weight_place(int64_t column, int64_t cols) {
  const int64_t whole = cols / kFewestWeightColumns * kFewestWeightColumns;
  return column < whole ? column : column + kFewestWeightColumns - (cols - whole);
}

// Whether rows whose values have so many bits are taken as they lie, without being unpacked. Their weights are as many
// as packed_weight_columns(), zeros among them; a column's lies at packed_weight_place().
bool takes_packed_rows(int bits, int64_t cols);
// How values come out of packed bytes: `groups` of them, whose values are in `together` whole bytes, are a vector.
struct PackedOrder {
  int64_t together = 0;
  int64_t groups = 0;
  bool planes = true;  // the first value of every group, then the second, ...; else groups, neighbours in them swapped
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
constexpr int64_t packed_step(int bits) { return packed_values(bits) * bits / 8; }  // bytes of a vector
constexpr int64_t packed_weight_columns(int bits, int64_t cols) {
  return divide_up(cols * bits / 8, packed_step(bits)) * packed_values(bits);
}
constexpr int64_t packed_weight_place(int64_t column, int bits, int64_t cols) {
  const auto [together, groups, planes] = packed_order(bits);
  const int64_t all = cols / together;
  const int64_t last = divide_up(all, groups) - 1;  // vectors: the last one ends with the row
  const int64_t of = column / together;
  const int64_t vector = std::min(of / groups, last);
  const int64_t group = vector < last ? of % groups : of - (all - groups);
  const int64_t value = column % together;
  return vector * packed_values(bits) + (planes ? value * groups + group : (group * together + value) ^ 1);
}

struct ByteRows {
  const uint8_t* bytes = nullptr;
  int64_t stride = 0;  // bytes; those of a row, where it is packed
  int64_t count = 0;
  int64_t cols = 0;    // or packed_weight_columns()
  int32_t zero = 128;  // the byte that stands for 0
  float longest = 0;   // at least the length of every row's bytes less that
  // One for each row; null: a term of 0, a scale of 1, a spread of 0.
  const float* terms = nullptr;
  const float* scales = nullptr;
  const float* spreads = nullptr;
  int bits = 8;  // of a value
};

struct ByteRowsQuery {
  ByteWeights weights;
  float constant = 0;
  float factor = 0;  // of sums: the step, with the sign and whatever else they are multiplied by
  float limit = 0;   // an infinite one, or none, lets all pass
  float tilt = 0;
  // The values and numbers of rows that passed, `found` of them; up to sixteen more may be written.
  float* values = nullptr;
  uint32_t* numbers = nullptr;
  int64_t found = 0;
};

// What a kernel of two planes adds to its sums of weight * value, where `zero` is the value that it takes for 0; and
// the constant for the high plane alone: less what the low one adds at most, and the rounding of all to f32.
struct PlaneTerms {
  int32_t high_shift = 0;
  int32_t low_shift = 0;
  float rough_constant = 0;
};
PlaneTerms plane_terms(const ByteRows& rows, const ByteRowsQuery& query, int32_t zero);

// Puts the rows that pass behind those that each query has found; they are numbered from `first` on.
using WeightedBytesScan = void(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count);
// The processor's: chosen once for many calls.
WeightedBytesScan* weighted_bytes_scan();
inline void scan_weighted_bytes(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  weighted_bytes_scan()(rows, first, queries, query_count);
}

// Whether the kernel in use brings each row near once for so many queries together; others go over the rows given with
// one query after another.
bool shares_weighted_rows(int64_t query_count, int64_t cols);
inline constexpr int64_t kFewestForPanels = 3;     // queries for which VNNI does,
inline constexpr int64_t kMostPanelColumns = 512;  // and columns

// The families: for ARM, where CpuExtensions::dotprod is, and where mmla is too; for x86, where vnni is, or avx2.
WeightedBytesScan scan_weighted_bytes_dotprod;
WeightedBytesScan scan_weighted_bytes_mmla;
WeightedBytesScan scan_weighted_bytes_vnni;
WeightedBytesScan scan_weighted_bytes_avx2;

}  // namespace kith
