// Rows of bytes against a query's weights with ARM's SDOT: four rows at a time, whose sums are added in a tree that
// leaves one sum in each lane.
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_ARM)

#include "kernels/lists/weighted_bytes.hpp"

#include <arm_neon.h>

namespace kith {
namespace {

constexpr int kRows = 4;
constexpr int64_t kBytes = 16;

inline int32x4_t add_lanes(const int32x4_t (&sums)[kRows]) {
  return vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3]));
}

// The sums of weight * (byte - 128) of four rows.
inline int32x4_t sum_rows(const uint8_t* const (&rows)[kRows], const int8_t* high, const int8_t* low, int64_t cols) {
  const uint8x16_t flip = vdupq_n_u8(0x80);
  int32x4_t highs[kRows];
  int32x4_t lows[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) highs[r] = lows[r] = vdupq_n_s32(0);
  const auto step = [&](int64_t from, int64_t c) {
    const int8x16_t h = vld1q_s8(high + c);
    const int8x16_t l = vld1q_s8(low + c);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const int8x16_t x = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(rows[r] + from), flip));
      highs[r] = vdotq_s32(highs[r], x, h);
      lows[r] = vdotq_s32(lows[r], x, l);
    }
  };
  int64_t c = 0;
  for (; c + kBytes <= cols; c += kBytes) step(c, c);
  if (c < cols) step(cols - kBytes, c);  // the weights of columns that were there are zeros
  return vaddq_s32(vshlq_n_s32(add_lanes(highs), 7), add_lanes(lows));
}

}  // namespace

int64_t scan_weighted_bytes_dotprod(const ByteRows& rows, const ByteRowsQuery& query, uint32_t first, float* values,
                                    uint32_t* numbers) {
  const auto* const high = static_cast<const int8_t*>(query.weights.weights);
  const int8_t* const low = high + weight_bytes(rows.cols) / 2;
  // Sums are of bytes less 128.
  const int32x4_t shift = vdupq_n_s32((128 - rows.zero) * query.weights.sum);
  const float32x4_t constant = vdupq_n_f32(query.constant);
  const float32x4_t factor = vdupq_n_f32(query.factor);
  const float32x4_t tilt = vdupq_n_f32(query.tilt);
  const float32x4_t limit = vdupq_n_f32(query.limit);
  int64_t found = 0;
  for (int64_t i = 0; i < rows.count; i += kRows) {
    const int64_t here = rows.count - i < kRows ? rows.count - i : kRows;
    const uint8_t* of[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) of[r] = rows.bytes + (i + (r < here ? r : 0)) * rows.stride;
    const float32x4_t sums = vcvtq_f32_s32(vaddq_s32(sum_rows(of, high, low, rows.cols), shift));
    const auto load = [&](const float* from) {
      if (here == kRows) return vld1q_f32(from + i);
      float32x4_t some = vdupq_n_f32(0);
      for (int64_t r = 0; r < here; ++r) reinterpret_cast<float*>(&some)[r] = from[i + r];
      return some;
    };
    float32x4_t value = vfmaq_f32(constant, factor, sums);
    if (rows.scales != nullptr) value = vmulq_f32(value, load(rows.scales));
    if (rows.terms != nullptr) value = vaddq_f32(value, load(rows.terms));
    const float32x4_t least = rows.spreads == nullptr ? value : vfmsq_f32(value, tilt, load(rows.spreads));
    const uint32x4_t above = vcgtq_f32(least, limit);  // not so of a NaN
    if (vminvq_u32(above) != 0) continue;
    for (int64_t r = 0; r < here; ++r) {
      values[found] = reinterpret_cast<const float*>(&value)[r];
      numbers[found] = first + static_cast<uint32_t>(i + r);
      found += reinterpret_cast<const uint32_t*>(&above)[r] == 0;
    }
  }
  return found;
}

}  // namespace kith

#endif
