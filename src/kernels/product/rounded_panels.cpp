#include "kernels/product/rounded_panels.hpp"

#include "core/cpu_target.hpp"
#include "kernels/distance/error_bound.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

// clang before 16 hides the intrinsics from functions that ask for the instructions themselves.
#if defined(__aarch64__) && (!defined(__clang__) || __clang_major__ >= 16)
#include <arm_neon.h>
#define KITH_BYTE_DOT 1
#endif

namespace kith {

namespace {

// Below this squares lose their digits; such a row is rounded to nothing.
constexpr float kSmallestLargest = 1e-15f;
constexpr int64_t kLanes = 16;

// Through the bits, which the compiler turns into vector code where it may not reorder floats.
float largest_magnitude(const float* row, int64_t cols) {
  int32_t bits = 0;
  for (int64_t c = 0; c < cols; ++c) bits = std::max(bits, std::bit_cast<int32_t>(row[c]) & 0x7FFFFFFF);
  return std::bit_cast<float>(bits);
}

}  // namespace

// All in f32: the residual has room for the rounding of each difference (a 2^-24th of 127 steps) and of the sum.
RoundedRow round_to_bytes(const float* row, int64_t cols, int64_t width, int8_t* out) {
  const float largest = largest_magnitude(row, cols);
  const bool tiny = !(largest >= kSmallestLargest);  // or NaN
  const float scale = tiny ? 0.0f : largest / 127;
  const float inverse = tiny ? 0.0f : 127 / largest;
  float squares[kLanes] = {};
  for (int64_t first = 0; first < cols; first += kLanes) {
    float values[kLanes] = {};
    alignas(16) int8_t bytes[kLanes];
    std::copy_n(row + first, std::min(kLanes, cols - first), values);
    for (int64_t j = 0; j < kLanes; ++j) {
      // Adding 1.5 * 2^23 rounds to a whole number, which the low bits of the sum hold.
      const float sum = values[j] * inverse + 0x1.8p23f;
      bytes[j] = static_cast<int8_t>(std::bit_cast<int32_t>(sum) & 0xFF);
      const float left = values[j] - scale * (sum - 0x1.8p23f);
      squares[j] += left * left;
    }
    const int64_t words = std::min(kLanes / 4, rounded_words(cols) - first / 4);
    for (int64_t word = 0; word < words; ++word) {
      std::memcpy(out + (first / 4 + word) * width * 4, bytes + word * 4, 4);
    }
  }
  double residual = 0;
  for (const float square : squares) residual += static_cast<double>(square);
  const double length = std::sqrt(static_cast<double>(cols));
  residual = std::sqrt(residual) * (1 + 0x1p-9) + length * static_cast<double>(tiny ? largest : scale * 0x1p-16f);
  return {scale, static_cast<float>(residual)};
}

#if KITH_BYTE_DOT

namespace {

constexpr int kQueries = kRoundedPanelQueries;
constexpr int kVectors = kRoundedPanelRows / 4;
#define KITH_DOT __attribute__((target("arch=armv8.2-a+dotprod")))

// One word of columns of a tile: each query's four bytes against four rows' in each vector.
KITH_DOT __attribute__((always_inline)) inline void tile_step(const int8_t* queries, const int8_t* rows,
                                                              int32x4_t (&sums)[kQueries][kVectors]) {
  int8x16_t r[kVectors];
  for (int v = 0; v < kVectors; ++v) r[v] = vld1q_s8(rows + v * 16);
#pragma GCC unroll 2
  for (int q = 0; q < kQueries; q += 4) {
    const int8x16_t four = vld1q_s8(queries + q * 4);
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      sums[q][v] = vdotq_laneq_s32(sums[q][v], r[v], four, 0);
      sums[q + 1][v] = vdotq_laneq_s32(sums[q + 1][v], r[v], four, 1);
      sums[q + 2][v] = vdotq_laneq_s32(sums[q + 2][v], r[v], four, 2);
      sums[q + 3][v] = vdotq_laneq_s32(sums[q + 3][v], r[v], four, 3);
    }
  }
}

// What each query of a panel accepts from this panel of rows.
inline void tile_limits(const RoundedQueries& queries, int64_t first, float norm, float residual, float* limits) {
  for (int q = 0; q < kQueries; ++q) {
    limits[q] = queries.limits[first + q] + queries.bound(first + q, norm, residual);
  }
}

KITH_DOT void scan_tile(const RoundedQueries& queries, int64_t first_query, const int8_t* query_panel,
                        const RoundedBase& base, int64_t panel, PanelHits& hits) {
  int32x4_t sums[kQueries][kVectors];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) sums[q][v] = vdupq_n_s32(0);
  }
  const int64_t words = rounded_words(base.cols);
  const int8_t* rows = base.panels + panel * words * kRoundedPanelRows * 4;
  for (int64_t word = 0; word < words; ++word) {
    tile_step(query_panel, rows, sums);
    query_panel += kQueries * 4;
    rows += kRoundedPanelRows * 4;
  }

  alignas(16) float limits[kQueries];
  tile_limits(queries, first_query, base.norms[panel], base.residuals[panel], limits);
  float32x4_t terms[kVectors];
  float32x4_t scales[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    terms[v] = vld1q_f32(base.terms + panel * kRoundedPanelRows + v * 4);
    scales[v] = vld1q_f32(base.scales + panel * kRoundedPanelRows + v * 4);
  }
  float32x4_t values[kQueries][kVectors];
  uint32x4_t all_above = vdupq_n_u32(~0u);
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
    const float factor = queries.factors[first_query + q];
    float32x4_t least;
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      values[q][v] = vfmaq_f32(terms[v], vmulq_n_f32(scales[v], factor), vcvtq_f32_s32(sums[q][v]));
      least = v == 0 ? values[q][0] : vminq_f32(least, values[q][v]);
    }
    all_above = vandq_u32(all_above, vcgtq_f32(least, vdupq_n_f32(limits[q])));
  }
  if (__builtin_expect(vminvq_u32(all_above) != 0, 1)) return;

  alignas(16) float stored[kQueries][kRoundedPanelRows];
  uint32_t passed = 0;
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
    float32x4_t least = values[q][0];
    for (int v = 0; v < kVectors; ++v) {
      least = vminq_f32(least, values[q][v]);
      vst1q_f32(stored[q] + v * 4, values[q][v]);
    }
    passed |= vminvq_u32(vcgtq_f32(least, vdupq_n_f32(limits[q]))) != 0 ? 0u : 1u << q;
  }
  for (; passed != 0; passed &= passed - 1) {
    const int q = std::countr_zero(passed);
    if (first_query + q < queries.count) hits.on_hit(first_query + q, panel, stored[q]);
  }
}

}  // namespace

bool has_rounded_product() { return cpu_extensions().dotprod; }

void scan_rounded_panels(const RoundedQueries& queries, const RoundedBase& base, int64_t first, int64_t count,
                         PanelHits& hits) {
  const int64_t query_bytes = rounded_words(base.cols) * 4;
  for (int64_t panel = first; panel < first + count; ++panel) {
    for (int64_t q = 0; q < queries.count; q += kQueries) {
      scan_tile(queries, q, queries.panels + q * query_bytes, base, panel, hits);
    }
  }
}

#else

bool has_rounded_product() { return false; }
void scan_rounded_panels(const RoundedQueries&, const RoundedBase&, int64_t, int64_t, PanelHits&) {}

#endif

}  // namespace kith
