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
constexpr int64_t kLongRow = 512;

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

}  // namespace

int64_t scan_weighted_bytes_dotprod(const ByteRows& rows, const ByteRowsQuery& query, uint32_t first, float* values,
                                    uint32_t* numbers) {
  const auto* const high = static_cast<const int8_t*>(query.weights.weights);
  const int8_t* const low = high + weight_bytes(rows.cols) / 2;
  // Sums are of bytes less 128.
  const int32_t of_high = (128 - rows.zero) * 128 * query.weights.high_sum;
  const int32x4_t high_shift = vdupq_n_s32(of_high);
  const int32x4_t low_shift = vdupq_n_s32((128 - rows.zero) * query.weights.sum - of_high);
  const float32x4_t constant = vdupq_n_f32(query.constant);
  const float32x4_t factor = vdupq_n_f32(query.factor);
  const float32x4_t tilt = vdupq_n_f32(query.tilt);
  const float32x4_t limit = vdupq_n_f32(query.limit);
  // What the low plane adds at most, and the rounding of all to f32.
  const double weights = largest_weight(rows.cols) * std::sqrt(static_cast<double>(rows.cols));
  const double most = static_cast<double>(std::fabs(query.factor)) * static_cast<double>(rows.longest) *
                      (1.01 * query.weights.low + 0x1p-22 * weights);
  const float32x4_t rough_constant = vdupq_n_f32(static_cast<float>(query.constant - most * (1 + 0x1p-20)));
  const auto sums_of = [&](const uint8_t* const (&of)[kRows], const int8_t* plane) {
    return rows.cols < kLongRow ? sum_side_by_side(of, plane, rows.cols) : sum_row_by_row(of, plane, rows.cols);
  };
  int64_t found = 0;
  for (int64_t i = 0; i < rows.count; i += kRows) {
    const int64_t here = rows.count - i < kRows ? rows.count - i : kRows;
    const uint8_t* of[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) of[r] = rows.bytes + (i + (r < here ? r : 0)) * rows.stride;
    const float32x4_t scales = rows.scales == nullptr ? vdupq_n_f32(1) : load_some(rows.scales + i, here);
    const float32x4_t terms = rows.terms == nullptr ? vdupq_n_f32(0) : load_some(rows.terms + i, here);
    const float32x4_t spread =
        rows.spreads == nullptr ? vdupq_n_f32(0) : vmulq_f32(tilt, load_some(rows.spreads + i, here));
    const auto value_of = [&](int32x4_t sums, float32x4_t from) {
      return vfmaq_f32(terms, vfmaq_f32(from, factor, vcvtq_f32_s32(sums)), scales);
    };
    const int32x4_t upper = vaddq_s32(vshlq_n_s32(sums_of(of, high), 7), high_shift);
    const float32x4_t least = vsubq_f32(value_of(upper, rough_constant), spread);
    if (vminvq_u32(vcgtq_f32(least, limit)) != 0) continue;  // not so of a NaN
    const int32x4_t all = vaddq_s32(upper, vaddq_s32(sums_of(of, low), low_shift));
    const float32x4_t value = value_of(all, constant);
    float some[kRows];
    uint32_t above[kRows];
    vst1q_f32(some, value);
    vst1q_u32(above, vcgtq_f32(vsubq_f32(value, spread), limit));
    for (int64_t r = 0; r < here; ++r) {
      values[found] = some[r];
      numbers[found] = first + static_cast<uint32_t>(i + r);
      found += above[r] == 0;
    }
  }
  return found;
}

}  // namespace kith

#endif
