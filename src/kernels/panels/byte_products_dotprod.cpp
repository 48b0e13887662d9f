// Products of bytes with ARM's dot products, of exact bytes (UDOT, SDOT) and of vectors rounded to bytes (SDOT): four
// products to each 32-bit lane, by a query's four bytes broadcast from a lane. 8 queries by 12 rows: 24 registers of sums,
// 3 of rows, 2 of queries.
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/rounded_panels.hpp"

#if defined(KITH_ARM)

#include <arm_neon.h>

#include <bit>

namespace kith {
namespace {

constexpr int kDotQueries = 8;
constexpr int kDotVectors = 3;
constexpr int kDotRows = 4 * kDotVectors;

struct UnsignedDot {
  template <int kLane>
  static inline int32x4_t dot(int32x4_t sum, uint8x16_t rows, uint8x16_t queries) {
    return vreinterpretq_s32_u32(vdotq_laneq_u32(vreinterpretq_u32_s32(sum), rows, queries, kLane));
  }
};

struct SignedDot {
  template <int kLane>
  static inline int32x4_t dot(int32x4_t sum, uint8x16_t rows, uint8x16_t queries) {
    return vdotq_laneq_s32(sum, vreinterpretq_s8_u8(rows), vreinterpretq_s8_u8(queries), kLane);
  }
};

template <typename Dot, int kLane>
inline void add_dots(uint8x16_t queries, const uint8x16_t (&rows)[kDotVectors], int32x4_t (&sums)[kDotVectors]) {
#pragma GCC unroll 3
  for (int v = 0; v < kDotVectors; ++v) sums[v] = Dot::template dot<kLane>(sums[v], rows[v], queries);
}

// The sums of a panel of queries with one of rows, of `units` words of four columns.
template <typename Dot>
__attribute__((always_inline)) inline void multiply_tile(const uint8_t* queries, const uint8_t* rows, int64_t units,
                                                         int32x4_t (&sums)[kDotQueries][kDotVectors]) {
#pragma GCC unroll 8
  for (int q = 0; q < kDotQueries; ++q) {
#pragma GCC unroll 3
    for (int v = 0; v < kDotVectors; ++v) sums[q][v] = vdupq_n_s32(0);
  }
  for (int64_t u = 0; u < units; ++u) {
    uint8x16_t r[kDotVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kDotVectors; ++v) r[v] = vld1q_u8(rows + 16 * v);
#pragma GCC unroll 2
    for (int q = 0; q < kDotQueries; q += 4) {
      const uint8x16_t four = vld1q_u8(queries + 4 * q);
      add_dots<Dot, 0>(four, r, sums[q]);
      add_dots<Dot, 1>(four, r, sums[q + 1]);
      add_dots<Dot, 2>(four, r, sums[q + 2]);
      add_dots<Dot, 3>(four, r, sums[q + 3]);
    }
    queries += 4 * kDotQueries;
    rows += 4 * kDotRows;
  }
}

// The same for one query of its panel. Two sets of sums, since one would wait for itself.
template <typename Dot>
__attribute__((always_inline)) inline void multiply_tile(const uint8_t* query, const uint8_t* rows, int64_t units,
                                                         int32x4_t (&sums)[1][kDotVectors]) {
  int32x4_t other[kDotVectors];
#pragma GCC unroll 3
  for (int v = 0; v < kDotVectors; ++v) other[v] = sums[0][v] = vdupq_n_s32(0);
  const auto add = [&](int64_t u, int32x4_t(&to)[kDotVectors]) {
    uint8x16_t r[kDotVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kDotVectors; ++v) r[v] = vld1q_u8(rows + u * 4 * kDotRows + 16 * v);
    const auto* const word = reinterpret_cast<const uint32_t*>(query + u * 4 * kDotQueries);
    add_dots<Dot, 0>(vreinterpretq_u8_u32(vld1q_dup_u32(word)), r, to);
  };
  int64_t u = 0;
  for (; u + 2 <= units; u += 2) {
    add(u, sums[0]);
    add(u + 1, other);
  }
  if (u < units) add(u, sums[0]);
#pragma GCC unroll 3
  for (int v = 0; v < kDotVectors; ++v) sums[0][v] = vaddq_s32(sums[0][v], other[v]);
}

template <typename Dot>
void scan_bytes(const BytePanelQueries& queries, int64_t first_query, const uint8_t* query_panel, const uint8_t* rows,
               int64_t units, const BytePanelBase& base, int64_t panel, BytePanelHits& hits) {
  int32x4_t sums[kDotQueries][kDotVectors];
  multiply_tile<Dot>(query_panel, rows, units, sums);

  const int32_t* terms = base.terms + panel * kDotRows;
  int32x4_t t[kDotVectors];
#pragma GCC unroll 3
  for (int v = 0; v < kDotVectors; ++v) t[v] = vld1q_s32(terms + 4 * v);
  alignas(16) int32_t limits[kDotQueries];
  for (int q = 0; q < kDotQueries; ++q) limits[q] = queries.limit(first_query + q, panel);
  uint32x4_t any = vdupq_n_u32(0);
#pragma GCC unroll 8
  for (int q = 0; q < kDotQueries; ++q) {
    const int32x4_t limit = vdupq_n_s32(limits[q]);
#pragma GCC unroll 3
    for (int v = 0; v < kDotVectors; ++v) {
      sums[q][v] = vmlsq_n_s32(t[v], sums[q][v], base.scale);
      any = vorrq_u32(any, vcleq_s32(sums[q][v], limit));
    }
  }
  if (vmaxvq_u32(any) == 0) return;  // nearly always

  alignas(16) int32_t values[kDotQueries][kDotRows];
#pragma GCC unroll 8
  for (int q = 0; q < kDotQueries; ++q) {
#pragma GCC unroll 3
    for (int v = 0; v < kDotVectors; ++v) vst1q_s32(values[q] + 4 * v, sums[q][v]);
  }
  for (int q = 0; q < kDotQueries && first_query + q < queries.count; ++q) {
    uint64_t passed = 0;
    for (int i = 0; i < kDotRows; ++i) passed |= static_cast<uint64_t>(values[q][i] <= limits[q]) << i;
    if (passed != 0) hits.on_hit(first_query + q, panel, passed, values[q]);
  }
}

template <typename Dot>
void scan_all(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
          BytePanelHits& hits) {
  const int64_t bytes = packed_bytes(base.format, base.cols);
  for (int64_t panel = first; panel < first + count; ++panel) {
    const uint8_t* const rows = static_cast<const uint8_t*>(base.panels) + panel * kDotRows * bytes;
    for (int64_t q = 0; q < queries.count; q += kDotQueries) {
      scan_bytes<Dot>(queries, q, static_cast<const uint8_t*>(queries.panels) + q * bytes, rows, bytes / 4, base, panel,
                     hits);
    }
  }
}

constexpr int64_t kFewQueries = 3;  // so few are faster one by one than as a panel

// A panel of queries, or one of them: then query_panel points to its bytes.
template <int kQueries>
void scan_rounded(const RoundedQueries& queries, int64_t first_query, const uint8_t* query_panel, const RoundedBase& base,
               int64_t panel, PanelHits& hits) {
  const int64_t words = rounded_words(base.cols);
  int32x4_t sums[kQueries][kDotVectors];
  multiply_tile<SignedDot>(query_panel, static_cast<const uint8_t*>(base.panels) + panel * words * kDotRows * 4, words,
                           sums);

  alignas(16) float limits[kQueries];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) limits[q] = queries.limit(first_query + q, base, panel);
  float32x4_t terms[kDotVectors];
  float32x4_t scales[kDotVectors];
  for (int v = 0; v < kDotVectors; ++v) {
    terms[v] = vld1q_f32(base.terms + panel * kDotRows + v * 4);
    scales[v] = vld1q_f32(base.scales + panel * kDotRows + v * 4);
  }
  float32x4_t values[kQueries][kDotVectors];
  uint32x4_t all_above = vdupq_n_u32(~0u);
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
    const float factor = queries.factors[first_query + q];
    float32x4_t least;
#pragma GCC unroll 3
    for (int v = 0; v < kDotVectors; ++v) {
      values[q][v] = vfmaq_f32(terms[v], vmulq_n_f32(scales[v], factor), vcvtq_f32_s32(sums[q][v]));
      least = v == 0 ? values[q][0] : vminq_f32(least, values[q][v]);
    }
    all_above = vandq_u32(all_above, vcgtq_f32(least, vdupq_n_f32(limits[q])));
  }
  if (__builtin_expect(vminvq_u32(all_above) != 0, 1)) return;

  alignas(16) float stored[kQueries][kDotRows];
  uint32_t passed = 0;
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
    float32x4_t least = values[q][0];
    for (int v = 0; v < kDotVectors; ++v) {
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

void scan_bytes_dotprod(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                        BytePanelHits& hits) {
  base.format == PanelFormat::i8 ? scan_all<SignedDot>(queries, base, first, count, hits)
                                 : scan_all<UnsignedDot>(queries, base, first, count, hits);
}

void scan_rounded_dotprod(const RoundedQueries& queries, const RoundedBase& base, int64_t first, int64_t count,
                          PanelHits& hits) {
  const int64_t query_bytes = rounded_words(base.cols) * 4;
  for (int64_t panel = first; panel < first + count; ++panel) {
    for (int64_t q = 0; q < queries.count; q += kDotQueries) {
      const uint8_t* const query_panel = static_cast<const uint8_t*>(queries.panels) + q * query_bytes;
      const int64_t in_tile = queries.count - q;
      if (in_tile > kFewQueries) {
        scan_rounded<kDotQueries>(queries, q, query_panel, base, panel, hits);
        continue;
      }
      for (int64_t i = 0; i < in_tile; ++i) scan_rounded<1>(queries, q + i, query_panel + i * 4, base, panel, hits);
    }
  }
}

}  // namespace kith

#endif
