// Products of vectors rounded to bytes with ARM's SDOT (byte_tile_dotprod.hpp).
#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/rounded_panels.hpp"

#if defined(KITH_ARM)

#include "kernels/panels/byte_tile_dotprod.hpp"

#include <bit>

namespace kith {
namespace {

constexpr int kVectors = kDotVectors;
constexpr int kRows = kDotRows;
constexpr int64_t kFewQueries = 3;  // so few are faster one by one than as a panel

// A panel of queries, or one of them: then query_panel points to its bytes.
template <int kQueries>
void scan_tile(const RoundedQueries& queries, int64_t first_query, const uint8_t* query_panel, const RoundedBase& base,
               int64_t panel, PanelHits& hits) {
  const int64_t words = rounded_words(base.cols);
  int32x4_t sums[kQueries][kVectors];
  multiply_tile<SignedDot>(query_panel, static_cast<const uint8_t*>(base.panels) + panel * words * kRows * 4, words,
                           sums);

  alignas(16) float limits[kQueries];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) limits[q] = queries.limit(first_query + q, base, panel);
  float32x4_t terms[kVectors];
  float32x4_t scales[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    terms[v] = vld1q_f32(base.terms + panel * kRows + v * 4);
    scales[v] = vld1q_f32(base.scales + panel * kRows + v * 4);
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

  alignas(16) float stored[kQueries][kRows];
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

void scan_rounded_dotprod(const RoundedQueries& queries, const RoundedBase& base, int64_t first, int64_t count,
                          PanelHits& hits) {
  const int64_t query_bytes = rounded_words(base.cols) * 4;
  for (int64_t panel = first; panel < first + count; ++panel) {
    for (int64_t q = 0; q < queries.count; q += kDotQueries) {
      const uint8_t* const query_panel = static_cast<const uint8_t*>(queries.panels) + q * query_bytes;
      const int64_t in_tile = queries.count - q;
      if (in_tile > kFewQueries) {
        scan_tile<kDotQueries>(queries, q, query_panel, base, panel, hits);
        continue;
      }
      for (int64_t i = 0; i < in_tile; ++i) scan_tile<1>(queries, q + i, query_panel + i * 4, base, panel, hits);
    }
  }
}

}  // namespace kith

#endif
