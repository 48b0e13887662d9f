// Rows of bytes against a query's weights with ARM's dot products, whichever it has: rows side by side, so that weights
// are loaded once for all of them, whose sums are added in a tree that leaves one sum in each lane. What comes after
// the sums waits long for them: eight rows of one query are compared at once, so that the next ones begin meanwhile.
// Long rows of one query are read one after the other: a core's own prefetching follows them, at the speed of memory.
#pragma once

#include "kernels/lists/weighted_bytes.hpp"

#include <arm_neon.h>

namespace kith {
namespace {

constexpr int kLanes = 4;  // rows that a vector of sums has
constexpr int64_t kBytes = 16;
// More of rows side by side are more streams than a core's own prefetching follows: it is told what comes.
constexpr int64_t kAhead = 2048;  // bytes
constexpr int64_t kLine = 64;
constexpr int64_t kLongRow = 256;  // bytes

// How the values of a row lie: kStep bytes of it are kPieces vectors of sixteen, in the order that packed_weight_place()
// gives the weights. Values of less than 8 bits have no sign bit, which all dot products take as they are.
struct WholeBytes {
  static constexpr int64_t kStep = 16;
  static constexpr int kPieces = 1;
  template <typename Dot>
  static constexpr int32_t zero_of() {
    return Dot::kZero;
  }
  template <typename Dot>
  static void load(const uint8_t* from, typename Dot::Bytes (&pieces)[kPieces]) {
    pieces[0] = Dot::load(from);
  }
};

// Values that fit a signed byte as they are.
struct BelowEightBits {
  template <typename Dot>
  static constexpr int32_t zero_of() {
    return 0;
  }
};

struct Nibbles : BelowEightBits {
  static constexpr int64_t kStep = 16;
  static constexpr int kPieces = 2;
  template <typename Dot>
  static void load(const uint8_t* from, typename Dot::Bytes (&pieces)[kPieces]) {
    const uint8x16_t both = vld1q_u8(from);
    pieces[0] = Dot::of(vandq_u8(both, vdupq_n_u8(15)));
    pieces[1] = Dot::of(vshrq_n_u8(both, 4));
  }
};

// Four values in three bytes.
struct SixBits : BelowEightBits {
  static constexpr int64_t kStep = 48;
  static constexpr int kPieces = 4;
  template <typename Dot>
  static void load(const uint8_t* from, typename Dot::Bytes (&pieces)[kPieces]) {
    const uint8x16x3_t three = vld3q_u8(from);
    const uint8x16_t six = vdupq_n_u8(63);
    pieces[0] = Dot::of(vandq_u8(three.val[0], six));
    pieces[1] = Dot::of(vandq_u8(vsliq_n_u8(vshrq_n_u8(three.val[0], 6), three.val[1], 2), six));
    pieces[2] = Dot::of(vandq_u8(vsliq_n_u8(vshrq_n_u8(three.val[1], 4), three.val[2], 4), six));
    pieces[3] = Dot::of(vshrq_n_u8(three.val[2], 2));
  }
};

// The sums of weight * (value - zero_of()) by one plane of the weights, for kLanes rows in each vector of `out`.
template <typename Dot, typename Packing, int kQueries, int kVectors>
[[gnu::always_inline]] inline void sum_rows(const uint8_t* const (&rows)[kVectors * kLanes], int64_t row_bytes,
                                            const int8_t* const (&weights)[kQueries],
                                            int32x4_t (&out)[kQueries][kVectors]) {
  constexpr int kRows = kVectors * kLanes;
  constexpr int kPieces = Packing::kPieces;
  int32x4_t sums[kQueries][kRows];
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[q][r] = vdupq_n_s32(0);
  }
  const auto step = [&](int64_t from, int64_t at) __attribute__((always_inline)) {
    int8x16_t w[kQueries][kPieces];
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
      for (int i = 0; i < kPieces; ++i) w[q][i] = vld1q_s8(weights[q] + at + i * kBytes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      typename Dot::Bytes x[kPieces];
      Packing::template load<Dot>(rows[r] + from, x);
#pragma GCC unroll 4
      for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
        for (int i = 0; i < kPieces; ++i) sums[q][r] = Dot::add(sums[q][r], x[i], w[q][i]);
      }
    }
  };
  int64_t from = 0;
  int64_t at = 0;
  for (; from + Packing::kStep <= row_bytes; from += Packing::kStep, at += kPieces * kBytes) step(from, at);
  if (from < row_bytes) step(row_bytes - Packing::kStep, at);  // the weights of columns that were there are zeros
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const int32x4_t* const of = sums[q] + v * kLanes;
      out[q][v] = vpaddq_s32(vpaddq_s32(of[0], of[1]), vpaddq_s32(of[2], of[3]));
    }
  }
}

// The same of one query and rows that are read one after the other.
template <typename Dot, typename Packing, int kVectors>
[[gnu::always_inline]] inline void sum_long_rows(const uint8_t* const (&rows)[kVectors * kLanes], int64_t row_bytes,
                                                 const int8_t* weights, int32x4_t (&out)[kVectors]) {
  constexpr int kPieces = Packing::kPieces;
  constexpr int kTogether = 4;  // sums that do not wait for each other
  for (int v = 0; v < kVectors; ++v) {
    int32x4_t all[kLanes];
#pragma GCC unroll 4
    for (int r = 0; r < kLanes; ++r) {
      const uint8_t* const row = rows[v * kLanes + r];
      int32x4_t sums[kTogether];
#pragma GCC unroll 4
      for (int i = 0; i < kTogether; ++i) sums[i] = vdupq_n_s32(0);
      const auto step = [&](int64_t from, int64_t at, int first) __attribute__((always_inline)) {
        typename Dot::Bytes x[kPieces];
        Packing::template load<Dot>(row + from, x);
#pragma GCC unroll 4
        for (int i = 0; i < kPieces; ++i) {
          int32x4_t& sum = sums[(first + i) % kTogether];
          sum = Dot::add(sum, x[i], vld1q_s8(weights + at + i * kBytes));
        }
      };
      int64_t from = 0;
      int64_t at = 0;
      for (; from + 4 * Packing::kStep <= row_bytes; from += 4 * Packing::kStep, at += 4 * kPieces * kBytes) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) step(from + i * Packing::kStep, at + i * kPieces * kBytes, i * kPieces);
      }
      for (; from + Packing::kStep <= row_bytes; from += Packing::kStep, at += kPieces * kBytes) step(from, at, 0);
      if (from < row_bytes) step(row_bytes - Packing::kStep, at, 1);
      all[r] = vaddq_s32(vaddq_s32(sums[0], sums[1]), vaddq_s32(sums[2], sums[3]));
    }
    out[v] = vpaddq_s32(vpaddq_s32(all[0], all[1]), vpaddq_s32(all[2], all[3]));
  }
}

inline float32x4_t load_some(const float* from, int64_t count) {
  if (count >= kLanes) return vld1q_f32(from);
  float some[kLanes] = {};
  for (int64_t r = 0; r < count; ++r) some[r] = from[r];
  return vld1q_f32(some);
}

// What a query needs at every row.
struct Ready {
  const int8_t* high;
  const int8_t* low;
  int32x4_t high_shift;
  int32x4_t low_shift;
  float32x4_t factor;
  float32x4_t constant;
  float32x4_t rough_constant;
  float32x4_t tilt;
  float32x4_t limit;
};

// `zero`: what dot products take for 0.
inline Ready ready(const ByteRows& rows, const ByteRowsQuery& query, int32_t zero) {
  const auto* const high = static_cast<const int8_t*>(query.weights.weights);
  const PlaneTerms terms = plane_terms(rows, query, zero);
  return {high,
          high + weight_bytes(rows.cols) / 2,
          vdupq_n_s32(terms.high_shift),
          vdupq_n_s32(terms.low_shift),
          vdupq_n_f32(query.factor),
          vdupq_n_f32(query.constant),
          vdupq_n_f32(terms.rough_constant),
          vdupq_n_f32(query.tilt),
          vdupq_n_f32(query.limit)};
}

inline bool all_set(uint32x4_t lanes) {
  return vget_lane_u64(vreinterpret_u64_u16(vmovn_u32(lanes)), 0) == UINT64_MAX;
}

// Some rows from number `i` on, for queries from a group's first on.
template <typename Dot, typename Packing, bool kLong, int kQueries, int kVectors>
[[gnu::always_inline]] inline void scan_group(const ByteRows& rows, int64_t i, uint32_t first,
                                              const Ready (&own)[kQueries], const int8_t* const (&planes)[kQueries],
                                              ByteRowsQuery* queries) {
  constexpr int64_t kRows = kVectors * kLanes;
  const int64_t here = rows.count - i < kRows ? rows.count - i : kRows;
  const uint8_t* of[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) of[r] = rows.bytes + (i + (r < here ? r : 0)) * rows.stride;
  int32x4_t sums[kQueries][kVectors];
  const int64_t row_bytes = Packing::kPieces == 1 ? rows.cols : rows.stride;
  if constexpr (kLong) {
    sum_long_rows<Dot, Packing, kVectors>(of, row_bytes, planes[0], sums[0]);
  } else {
    for (int64_t at = 0; at < kRows * rows.stride; at += kLine) __builtin_prefetch(of[0] + kAhead + at);
    sum_rows<Dot, Packing, kQueries, kVectors>(of, row_bytes, planes, sums);
  }
  float32x4_t scales[kVectors];
  float32x4_t terms[kVectors];
  float32x4_t spreads[kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = i + v * kLanes;
    const int64_t some = here - v * kLanes;
    scales[v] = rows.scales == nullptr ? vdupq_n_f32(1) : load_some(rows.scales + at, some);
    terms[v] = rows.terms == nullptr ? vdupq_n_f32(0) : load_some(rows.terms + at, some);
    spreads[v] = rows.spreads == nullptr ? vdupq_n_f32(0) : load_some(rows.spreads + at, some);
  }
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
    const auto value_of = [&](int v, int32x4_t all, float32x4_t from) {
      return vfmaq_f32(terms[v], vfmaq_f32(from, vcvtq_f32_s32(all), own[q].factor), scales[v]);
    };
    int32x4_t upper[kVectors];
    uint32x4_t dropped[kVectors];  // not so of a NaN
    uint32x4_t every = vdupq_n_u32(UINT32_MAX);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      upper[v] = vaddq_s32(vshlq_n_s32(sums[q][v], 7), own[q].high_shift);
      const float32x4_t least = vfmsq_f32(value_of(v, upper[v], own[q].rough_constant), spreads[v], own[q].tilt);
      dropped[v] = vcgtq_f32(least, own[q].limit);
      every = vandq_u32(every, dropped[v]);
    }
    if (all_set(every)) continue;
    for (int v = 0; v < kVectors; ++v) {
      if (all_set(dropped[v])) continue;
      const uint8_t* some[kLanes];
      for (int r = 0; r < kLanes; ++r) some[r] = of[v * kLanes + r];
      const int8_t* const low[1] = {own[q].low};
      int32x4_t lower[1][1];
      sum_rows<Dot, Packing, 1, 1>(some, row_bytes, low, lower);
      const float32x4_t value =
          value_of(v, vaddq_s32(upper[v], vaddq_s32(lower[0][0], own[q].low_shift)), own[q].constant);
      ByteRowsQuery& query = queries[q];
      float values[kLanes];
      uint32_t above[kLanes];
      vst1q_f32(values, value);
      vst1q_u32(above, vcgtq_f32(vfmsq_f32(value, spreads[v], own[q].tilt), own[q].limit));
      for (int64_t r = 0; r < kLanes && v * kLanes + r < here; ++r) {
        query.values[query.found] = values[r];
        query.numbers[query.found] = first + static_cast<uint32_t>(i + v * kLanes + r);
        query.found += above[r] == 0;
      }
    }
  }
}

template <typename Dot, typename Packing, bool kLong, int kQueries, int kVectors>
void scan_queries(const ByteRows& given, uint32_t first, ByteRowsQuery* queries) {
  const ByteRows rows = given;  // which nothing that is written changes
  Ready own[kQueries];
  const int8_t* planes[kQueries];
  for (int q = 0; q < kQueries; ++q) {
    own[q] = ready(rows, queries[q], Packing::template zero_of<Dot>());
    planes[q] = own[q].high;
  }
  int64_t i = 0;
  for (; i + kVectors * kLanes <= rows.count; i += kVectors * kLanes) {
    scan_group<Dot, Packing, kLong, kQueries, kVectors>(rows, i, first, own, planes, queries);
  }
  for (; i < rows.count; i += kLanes) {
    scan_group<Dot, Packing, kLong, kQueries, 1>(rows, i, first, own, planes, queries);
  }
}

template <typename Dot, typename Packing>
void scan_packed(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  int64_t q = 0;
  for (; q + 4 <= query_count; q += 4) scan_queries<Dot, Packing, false, 4, 1>(rows, first, queries + q);
  for (; q + 2 <= query_count; q += 2) scan_queries<Dot, Packing, false, 2, 1>(rows, first, queries + q);
  if (q == query_count) return;
  if (rows.stride >= kLongRow) return scan_queries<Dot, Packing, true, 1, 1>(rows, first, queries + q);
  scan_queries<Dot, Packing, false, 1, 2>(rows, first, queries + q);
}

template <typename Dot>
void scan_all_queries(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  if (rows.bits == 4) return scan_packed<Dot, Nibbles>(rows, first, queries, query_count);
  if (rows.bits == 6) return scan_packed<Dot, SixBits>(rows, first, queries, query_count);
  scan_packed<Dot, WholeBytes>(rows, first, queries, query_count);
}

}  // namespace
}  // namespace kith
