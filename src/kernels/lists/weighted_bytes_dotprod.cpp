// Rows of bytes against a query's weights with ARM's SDOT: four rows at a time, whose sums are added in a tree that
// leaves one sum in each lane. Of long rows one is read after the other, as a core's own prefetching follows best.
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_ARM)

#include "kernels/lists/weighted_bytes.hpp"

#include <arm_neon.h>

#include <cmath>

namespace kith {
namespace {

constexpr int kRows = 4;
constexpr int64_t kBytes = 16;
constexpr int64_t kLongRow = 256;
// Four rows side by side of so many columns are more streams than a core's own prefetching follows.
constexpr int64_t kPrefetchFrom = 192;
constexpr int64_t kAhead = 1024;  // bytes

inline int32x4_t add_lanes(const int32x4_t (&sums)[kRows]) {
  return vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3]));
}

inline int8x16_t load_signed(const uint8_t* from) {
  return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(from), vdupq_n_u8(0x80)));
}

// The sums of weight * (byte - 128) of four rows, by one plane of the weights.
inline int32x4_t sum_side_by_side(const uint8_t* const (&rows)[kRows], const int8_t* weights, int64_t cols) {
  int32x4_t sums[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) sums[r] = vdupq_n_s32(0);
  const auto step = [&](int64_t from, int64_t c) {
    const int8x16_t w = vld1q_s8(weights + c);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r] = vdotq_s32(sums[r], load_signed(rows[r] + from), w);
  };
  int64_t c = 0;
  for (; c + kBytes <= cols; c += kBytes) step(c, c);
  if (c < cols) step(cols - kBytes, c);  // the weights of columns that were there are zeros
  return add_lanes(sums);
}

inline int32x4_t sum_row_by_row(const uint8_t* const (&rows)[kRows], const int8_t* weights, int64_t cols) {
  int32x4_t all[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    int32x4_t sums[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[i] = vdupq_n_s32(0);
    int64_t c = 0;
    for (; c + 4 * kBytes <= cols; c += 4 * kBytes) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const int64_t at = c + i * kBytes;
        sums[i] = vdotq_s32(sums[i], load_signed(rows[r] + at), vld1q_s8(weights + at));
      }
    }
    for (; c + kBytes <= cols; c += kBytes) {
      sums[0] = vdotq_s32(sums[0], load_signed(rows[r] + c), vld1q_s8(weights + c));
    }
    if (c < cols) sums[1] = vdotq_s32(sums[1], load_signed(rows[r] + cols - kBytes), vld1q_s8(weights + c));
    all[r] = vaddq_s32(vaddq_s32(sums[0], sums[1]), vaddq_s32(sums[2], sums[3]));
  }
  return add_lanes(all);
}

inline float32x4_t load_some(const float* from, int64_t count) {
  if (count == kRows) return vld1q_f32(from);
  float some[kRows] = {};
  for (int64_t r = 0; r < count; ++r) some[r] = from[r];
  return vld1q_f32(some);
}

// The same of several queries, whose rows are loaded once.
template <int kQueries>
inline void sum_together(const uint8_t* const (&rows)[kRows], const int8_t* const (&weights)[kQueries], int64_t cols,
                         int32x4_t (&out)[kQueries]) {
  int32x4_t sums[kQueries][kRows];
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[q][r] = vdupq_n_s32(0);
  }
  const auto step = [&](int64_t from, int64_t c) {
    int8x16_t x[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) x[r] = load_signed(rows[r] + from);
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) {
      const int8x16_t w = vld1q_s8(weights[q] + c);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sums[q][r] = vdotq_s32(sums[q][r], x[r], w);
    }
  };
  int64_t c = 0;
  for (; c + kBytes <= cols; c += kBytes) step(c, c);
  if (c < cols) step(cols - kBytes, c);
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) out[q] = add_lanes(sums[q]);
}

// What a query needs at every row.
struct Ready {
  const int8_t* high;
  const int8_t* low;
  int32x4_t high_shift;
  int32x4_t low_shift;
  float32x4_t factor;
  float32x4_t constant;
  float32x4_t rough_constant;  // less what the low plane adds at most, and the rounding of all to f32
  float32x4_t tilt;
  float32x4_t limit;
};

Ready ready(const ByteRows& rows, const ByteRowsQuery& query) {
  const auto* const high = static_cast<const int8_t*>(query.weights.weights);
  // Sums are of bytes less 128.
  const int32_t of_high = (128 - rows.zero) * 128 * query.weights.high_sum;
  const double weights = largest_weight(rows.cols) * std::sqrt(static_cast<double>(rows.cols));
  const double most = static_cast<double>(std::fabs(query.factor)) * static_cast<double>(rows.longest) *
                      (1.01 * query.weights.low + 0x1p-22 * weights);
  return {high,
          high + weight_bytes(rows.cols) / 2,
          vdupq_n_s32(of_high),
          vdupq_n_s32((128 - rows.zero) * query.weights.sum - of_high),
          vdupq_n_f32(query.factor),
          vdupq_n_f32(query.constant),
          vdupq_n_f32(static_cast<float>(query.constant - most * (1 + 0x1p-20))),
          vdupq_n_f32(query.tilt),
          vdupq_n_f32(query.limit)};
}

template <int kQueries>
void scan_queries(const ByteRows& given, uint32_t first, ByteRowsQuery* queries) {
  const ByteRows rows = given;  // which nothing that is written changes
  Ready own[kQueries];
  const int8_t* planes[kQueries];
  for (int q = 0; q < kQueries; ++q) {
    own[q] = ready(rows, queries[q]);
    planes[q] = own[q].high;
  }
  const bool is_long = kQueries == 1 && rows.cols >= kLongRow;
  const bool prefetches = !is_long && rows.cols >= kPrefetchFrom;
  for (int64_t i = 0; i < rows.count; i += kRows) {
    const int64_t here = rows.count - i < kRows ? rows.count - i : kRows;
    const uint8_t* of[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) of[r] = rows.bytes + (i + (r < here ? r : 0)) * rows.stride;
    for (int64_t at = 0; prefetches && at < kRows * rows.stride; at += 64) __builtin_prefetch(of[0] + kAhead + at);
    int32x4_t sums[kQueries];
    if (is_long) {
      sums[0] = sum_row_by_row(of, planes[0], rows.cols);
    } else {
      sum_together<kQueries>(of, planes, rows.cols, sums);
    }
    const float32x4_t scales = rows.scales == nullptr ? vdupq_n_f32(1) : load_some(rows.scales + i, here);
    const float32x4_t terms = rows.terms == nullptr ? vdupq_n_f32(0) : load_some(rows.terms + i, here);
    const float32x4_t spreads = rows.spreads == nullptr ? vdupq_n_f32(0) : load_some(rows.spreads + i, here);
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) {
      const auto value_of = [&](int32x4_t all, float32x4_t from) {
        return vfmaq_f32(terms, vfmaq_f32(from, vcvtq_f32_s32(all), own[q].factor), scales);
      };
      const int32x4_t upper = vaddq_s32(vshlq_n_s32(sums[q], 7), own[q].high_shift);
      const float32x4_t least = vfmsq_f32(value_of(upper, own[q].rough_constant), spreads, own[q].tilt);
      if (vminvq_u32(vcgtq_f32(least, own[q].limit)) != 0) continue;  // not so of a NaN
      const int32x4_t lower = rows.cols < kLongRow ? sum_side_by_side(of, own[q].low, rows.cols)
                                                   : sum_row_by_row(of, own[q].low, rows.cols);
      const float32x4_t value = value_of(vaddq_s32(upper, vaddq_s32(lower, own[q].low_shift)), own[q].constant);
      ByteRowsQuery& query = queries[q];
      float some[kRows];
      uint32_t above[kRows];
      vst1q_f32(some, value);
      vst1q_u32(above, vcgtq_f32(vfmsq_f32(value, spreads, own[q].tilt), own[q].limit));
      for (int64_t r = 0; r < here; ++r) {
        query.values[query.found] = some[r];
        query.numbers[query.found] = first + static_cast<uint32_t>(i + r);
        query.found += above[r] == 0;
      }
    }
  }
}

}  // namespace

void scan_weighted_bytes_dotprod(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  int64_t q = 0;
  for (; q + 4 <= query_count; q += 4) scan_queries<4>(rows, first, queries + q);
  for (; q + 2 <= query_count; q += 2) scan_queries<2>(rows, first, queries + q);
  if (q < query_count) scan_queries<1>(rows, first, queries + q);
}

}  // namespace kith

#endif
