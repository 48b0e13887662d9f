// Weighted sums of bytes with ARM's dot products, with or without MMLA. Several rows are processed side by side, so
// that weights are loaded once for all of them; a tree of additions leaves one sum per lane. The sums have a long
// latency: for a single query, 64 rows are computed before any code depends on which of them passed, so that later rows
// overlap with earlier ones and no branch is mispredicted. Long rows of a single query are read one after the other,
// which the hardware prefetcher follows at memory speed.
#pragma once

#include "kernels/lists/weighted_bytes.hpp"

#include <arm_neon.h>
#include <algorithm>
#include <bit>
#include <limits>

namespace kith {
namespace {

constexpr int kLanes = 4;  // rows per vector of sums
constexpr int64_t kBytes = 16;
// Prefetch distance: rows side by side are more streams than the hardware prefetcher follows.
constexpr int64_t kAhead = 2048;  // bytes
constexpr int64_t kLine = 64;
constexpr int64_t kLongRow = 256;  // bytes

// How values are packed in a row: kStep bytes unpack to kPieces vectors of sixteen, in the order of
// packed_weight_place(). Values of fewer than 8 bits are never negative, so every dot product takes them unchanged.
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

// Values that fit a signed byte unchanged.
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
  if (from < row_bytes) step(row_bytes - Packing::kStep, at);  // the weights of columns already counted are zeros
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const int32x4_t* const of = sums[q] + v * kLanes;
      out[q][v] = vpaddq_s32(vpaddq_s32(of[0], of[1]), vpaddq_s32(of[2], of[3]));
    }
  }
}

// The same for one query, with rows read one after the other.
template <typename Dot, typename Packing, int kVectors>
[[gnu::always_inline]] inline void sum_long_rows(const uint8_t* const (&rows)[kVectors * kLanes], int64_t row_bytes,
                                                 const int8_t* weights, int32x4_t (&out)[kVectors]) {
  constexpr int kPieces = Packing::kPieces;
  constexpr int kTogether = 4;  // independent sums
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

// A query's values that every row uses.
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

// `zero`: the value that the dot products treat as 0.
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

inline void prefetch_rows(const uint8_t* row, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(row + kAhead + at);
}

// Rows from `i` on, for a group of queries.
template <typename Dot, typename Packing, int kQueries>
[[gnu::always_inline]] inline void scan_group(const ByteRows& rows, int64_t i, uint32_t first,
                                              const Ready (&own)[kQueries], const int8_t* const (&planes)[kQueries],
                                              ByteRowsQuery* queries) {
  const int64_t here = rows.count - i < kLanes ? rows.count - i : kLanes;
  const uint8_t* of[kLanes];
#pragma GCC unroll 4
  for (int r = 0; r < kLanes; ++r) of[r] = rows.bytes + (i + (r < here ? r : 0)) * rows.stride;
  int32x4_t sums[kQueries][1];
  const int64_t row_bytes = Packing::kPieces == 1 ? rows.cols : rows.stride;
  prefetch_rows(of[0], kLanes * rows.stride);
  sum_rows<Dot, Packing, kQueries, 1>(of, row_bytes, planes, sums);
  const float32x4_t scales = rows.scales == nullptr ? vdupq_n_f32(1) : load_some(rows.scales + i, here);
  const float32x4_t terms = rows.terms == nullptr ? vdupq_n_f32(0) : load_some(rows.terms + i, here);
  const float32x4_t spreads = rows.spreads == nullptr ? vdupq_n_f32(0) : load_some(rows.spreads + i, here);
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
    const auto value_of = [&](int32x4_t all, float32x4_t from) {
      return vfmaq_f32(terms, vfmaq_f32(from, vcvtq_f32_s32(all), own[q].factor), scales);
    };
    const int32x4_t upper = vaddq_s32(vshlq_n_s32(sums[q][0], 7), own[q].high_shift);
    const float32x4_t least = vfmsq_f32(value_of(upper, own[q].rough_constant), spreads, own[q].tilt);
    if (all_set(vcgtq_f32(least, own[q].limit))) continue;  // false for NaN
    const int8_t* const low[1] = {own[q].low};
    int32x4_t lower[1][1];
    sum_rows<Dot, Packing, 1, 1>(of, row_bytes, low, lower);
    const float32x4_t value = value_of(vaddq_s32(upper, vaddq_s32(lower[0][0], own[q].low_shift)), own[q].constant);
    ByteRowsQuery& query = queries[q];
    float values[kLanes];
    uint32_t above[kLanes];
    vst1q_f32(values, value);
    vst1q_u32(above, vcgtq_f32(vfmsq_f32(value, spreads, own[q].tilt), own[q].limit));
    for (int64_t r = 0; r < kLanes && r < here; ++r) {
      query.values[query.found] = values[r];
      query.numbers[query.found] = first + static_cast<uint32_t>(i + r);
      query.found += above[r] == 0;
    }
  }
}

template <typename Dot, typename Packing, int kQueries>
void scan_queries(const ByteRows& given, uint32_t first, ByteRowsQuery* queries) {
  const ByteRows rows = given;  // a local copy: stores cannot alias it
  Ready own[kQueries];
  const int8_t* planes[kQueries];
  for (int q = 0; q < kQueries; ++q) {
    own[q] = ready(rows, queries[q], Packing::template zero_of<Dot>());
    planes[q] = own[q].high;
  }
  for (int64_t i = 0; i < rows.count; i += kLanes) {
    scan_group<Dot, Packing, kQueries>(rows, i, first, own, planes, queries);
  }
}

constexpr int64_t kChunk = 64;  // rows of one query computed before any result is used
constexpr int kSideBySide = 8;  // of them side by side
alignas(16) constexpr float kZeros[kChunk] = {};
struct Ones {
  float values[kChunk];
  constexpr Ones() : values() {
    for (float& value : values) value = 1;
  }
};
alignas(16) constexpr Ones kOnes;

// Per-row values of a chunk.
struct ChunkNumbers {
  const float* scales;
  const float* terms;
  const float* spreads;
};

inline float32x4_t value_of(const Ready& own, int32x4_t sums, float32x4_t from, float32x4_t scales, float32x4_t terms) {
  return vfmaq_f32(terms, vfmaq_f32(from, vcvtq_f32_s32(sums), own.factor), scales);
}

// Eight rows by the high plane: stores their sums, and for each row a byte that is zero if it may pass.
template <typename Dot, typename Packing, bool kLong>
[[gnu::always_inline]] inline void compare_rows(const Ready& own, const uint8_t* const (&of)[kSideBySide],
                                                int64_t row_bytes, const ChunkNumbers& numbers, int64_t at,
                                                int32_t* upper, uint8_t* dropped) {
  int32x4_t sums[1][2];
  if constexpr (kLong) {
    sum_long_rows<Dot, Packing, 2>(of, row_bytes, own.high, sums[0]);
  } else {
    const int8_t* const planes[1] = {own.high};
    sum_rows<Dot, Packing, 1, 2>(of, row_bytes, planes, sums);
  }
  uint32x4_t above[2];  // false for NaN
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    const int64_t i = at + v * kLanes;
    const int32x4_t sum = vaddq_s32(vshlq_n_s32(sums[0][v], 7), own.high_shift);
    const float32x4_t value =
        value_of(own, sum, own.rough_constant, vld1q_f32(numbers.scales + i), vld1q_f32(numbers.terms + i));
    above[v] = vcgtq_f32(vfmsq_f32(value, vld1q_f32(numbers.spreads + i), own.tilt), own.limit);
    vst1q_s32(upper + i, sum);
  }
  const uint16x8_t both = vuzp1q_u16(vreinterpretq_u16_u32(above[0]), vreinterpretq_u16_u32(above[1]));
  vst1_u8(dropped + at, vmovn_u16(both));
}

// A bit for each zero byte.
inline uint64_t zero_bytes(const uint8_t (&bytes)[kChunk]) {
  const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
  uint8x16_t of[4];
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {  // same width as the stores, for store forwarding
    of[g] = vbicq_u8(bits, vcombine_u8(vld1_u8(bytes + 16 * g), vld1_u8(bytes + 16 * g + 8)));
  }
  const uint8x16_t all = vpaddq_u8(vpaddq_u8(of[0], of[1]), vpaddq_u8(of[2], of[3]));
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

// The chunk's rows that may pass, four at a time, by both planes.
template <typename Dot, typename Packing>
inline void look_again(const Ready& own, const uint8_t* bytes, int64_t stride, int64_t row_bytes,
                       const ChunkNumbers& numbers, const int32_t* upper, uint64_t left, uint32_t first,
                       ByteRowsQuery& query) {
  while (left != 0) {
    const uint8_t* of[kLanes];
    int32_t high[kLanes];
    float scales[kLanes];
    float terms[kLanes];
    float spreads[kLanes];
    int row[kLanes];
    int here = 0;
    for (int r = 0, i = 0; r < kLanes; ++r) {
      if (left != 0) {
        i = std::countr_zero(left);
        left &= left - 1;
        ++here;
      }
      row[r] = i;
      of[r] = bytes + i * stride;
      high[r] = upper[i];
      scales[r] = numbers.scales[i];
      terms[r] = numbers.terms[i];
      spreads[r] = numbers.spreads[i];
    }
    const int8_t* const low[1] = {own.low};
    int32x4_t lower[1][1];
    sum_rows<Dot, Packing, 1, 1>(of, row_bytes, low, lower);
    const int32x4_t sum = vaddq_s32(vld1q_s32(high), vaddq_s32(lower[0][0], own.low_shift));
    const float32x4_t value = value_of(own, sum, own.constant, vld1q_f32(scales), vld1q_f32(terms));
    float values[kLanes];
    uint32_t above[kLanes];
    vst1q_f32(values, value);
    vst1q_u32(above, vcgtq_f32(vfmsq_f32(value, vld1q_f32(spreads), own.tilt), own.limit));
    for (int r = 0; r < here; ++r) {
      query.values[query.found] = values[r];
      query.numbers[query.found] = first + static_cast<uint32_t>(row[r]);
      query.found += above[r] == 0;
    }
  }
}

// The first `whole` rows, a multiple of four, when all of them pass.
template <typename Dot, typename Packing>
void take_rows(const Ready& own, const ByteRows& rows, int64_t row_bytes, int64_t whole, uint32_t first,
               ByteRowsQuery& query) {
  const uint32_t counted[kLanes] = {0, 1, 2, 3};
  const int8_t* const planes[2] = {own.high, own.low};
  for (int64_t i = 0; i < whole; i += kLanes) {
    const uint8_t* of[kLanes];
#pragma GCC unroll 4
    for (int r = 0; r < kLanes; ++r) of[r] = rows.bytes + (i + r) * rows.stride;
    prefetch_rows(of[0], kLanes * rows.stride);
    int32x4_t sums[2][1];
    sum_rows<Dot, Packing, 2, 1>(of, row_bytes, planes, sums);
    const int32x4_t upper = vaddq_s32(vshlq_n_s32(sums[0][0], 7), own.high_shift);
    const int32x4_t sum = vaddq_s32(upper, vaddq_s32(sums[1][0], own.low_shift));
    const float32x4_t scales = rows.scales == nullptr ? vdupq_n_f32(1) : vld1q_f32(rows.scales + i);
    const float32x4_t terms = rows.terms == nullptr ? vdupq_n_f32(0) : vld1q_f32(rows.terms + i);
    vst1q_f32(query.values + query.found, value_of(own, sum, own.constant, scales, terms));
    vst1q_u32(query.numbers + query.found,
              vaddq_u32(vld1q_u32(counted), vdupq_n_u32(first + static_cast<uint32_t>(i))));
    query.found += kLanes;
  }
}

template <typename Dot, typename Packing, bool kLong>
void scan_one_query(const ByteRows& given, uint32_t first, ByteRowsQuery& query) {
  const ByteRows rows = given;  // a local copy: stores cannot alias it
  const Ready own = ready(rows, query, Packing::template zero_of<Dot>());
  const int64_t row_bytes = Packing::kPieces == 1 ? rows.cols : rows.stride;
  const int64_t stride = rows.stride;
  alignas(16) int32_t upper[kChunk];
  alignas(16) uint8_t dropped[kChunk];
  float ends[3][kSideBySide];
  int64_t start = 0;
  if (!(query.limit < std::numeric_limits<float>::infinity())) {
    start = rows.count / kLanes * kLanes;
    take_rows<Dot, Packing>(own, rows, row_bytes, start, first, query);
  }
  for (; start < rows.count; start += kChunk) {
    const int64_t here = rows.count - start < kChunk ? rows.count - start : kChunk;
    const int64_t whole = here / kSideBySide * kSideBySide;
    const uint8_t* const bytes = rows.bytes + start * stride;
    const ChunkNumbers numbers{rows.scales == nullptr ? kOnes.values : rows.scales + start,
                               rows.terms == nullptr ? kZeros : rows.terms + start,
                               rows.spreads == nullptr ? kZeros : rows.spreads + start};
    if (here < kChunk) std::fill_n(dropped, kChunk, uint8_t{255});
    const uint8_t* of[kSideBySide];
    for (int64_t i = 0; i < whole; i += kSideBySide) {
#pragma GCC unroll 8
      for (int r = 0; r < kSideBySide; ++r) of[r] = bytes + (i + r) * stride;
      if constexpr (!kLong) prefetch_rows(of[0], kSideBySide * stride);
      compare_rows<Dot, Packing, kLong>(own, of, row_bytes, numbers, i, upper, dropped);
    }
    if (whole < here) {  // the last rows; the last one is repeated to fill eight
      for (int r = 0; r < kSideBySide; ++r) {
        const int64_t i = whole + r < here ? whole + r : here - 1;
        of[r] = bytes + i * stride;
        ends[0][r] = numbers.scales[i];
        ends[1][r] = numbers.terms[i];
        ends[2][r] = numbers.spreads[i];
      }
      const ChunkNumbers of_ends{ends[0], ends[1], ends[2]};
      compare_rows<Dot, Packing, kLong>(own, of, row_bytes, of_ends, 0, upper + whole, dropped + whole);
      std::fill(dropped + here, dropped + whole + kSideBySide, uint8_t{255});
    }
    const uint64_t left = zero_bytes(dropped);
    if (left == 0) continue;
    look_again<Dot, Packing>(own, bytes, stride, row_bytes, numbers, upper, left, first + static_cast<uint32_t>(start),
                             query);
  }
}

template <typename Dot, typename Packing>
void scan_packed(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  int64_t q = 0;
  for (; q + 4 <= query_count; q += 4) scan_queries<Dot, Packing, 4>(rows, first, queries + q);
  for (; q + 2 <= query_count; q += 2) scan_queries<Dot, Packing, 2>(rows, first, queries + q);
  if (q == query_count) return;
  if (rows.stride >= kLongRow) return scan_one_query<Dot, Packing, true>(rows, first, queries[q]);
  scan_one_query<Dot, Packing, false>(rows, first, queries[q]);
}

template <typename Dot>
void scan_all_queries(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  if (rows.bits == 4) return scan_packed<Dot, Nibbles>(rows, first, queries, query_count);
  if (rows.bits == 6) return scan_packed<Dot, SixBits>(rows, first, queries, query_count);
  scan_packed<Dot, WholeBytes>(rows, first, queries, query_count);
}

}  // namespace
}  // namespace kith
