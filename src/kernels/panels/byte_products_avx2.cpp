// Products of vectors rounded to bytes with AVX2: pairs of products in 16 bits, which cannot overflow (kAvx2QueryForm),
// then two of these in each 32-bit lane. What was added to a query's bytes a row's sum of bytes takes back.
//
// Panels are as wide as those of f32, 16 rows or, with AVX-512, 48: sixteen rows at a time, for up to three queries,
// whose sums and rows fit the registers.
// Cost: three instructions for 32 products, where f32 takes four for as many; a query by itself goes at the speed at
// which its rows come from the second-level cache.
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/rounded_panels.hpp"

#if defined(KITH_X86)

#include "kernels/panels/x86_intrinsics.hpp"

#include <algorithm>
#include <bit>

#define KITH_FOR_AVX2 KITH_FOR("avx2,fma")

namespace kith {
namespace {

constexpr int kAvx2Lanes = 8;
constexpr int kBlockRows = 2 * kAvx2Lanes;
constexpr int kTogether = 3;  // queries

struct PairSums {
  __m256i v0, v1;

  KITH_FOR_AVX2 PairSums() : v0(_mm256_setzero_si256()), v1(v0) {}
  KITH_FOR_AVX2 void add(int32_t four_bytes, __m256i r0, __m256i r1, __m256i ones) {
    const __m256i query = _mm256_set1_epi32(four_bytes);
    v0 = _mm256_add_epi32(v0, _mm256_madd_epi16(_mm256_maddubs_epi16(query, r0), ones));
    v1 = _mm256_add_epi32(v1, _mm256_madd_epi16(_mm256_maddubs_epi16(query, r1), ones));
  }
};

// The layout of the panels: word u of row i at rows[u * row_step + i], of query q at queries[u * query_step + q].
struct TileSteps {
  int64_t words;
  int64_t row_step;
  int64_t query_step;
};

// Sixteen rows: what turns sums into values.
struct BlockTerms {
  __m256 terms[2];
  __m256 scales[2];
  __m256i surplus[2];

  KITH_FOR_AVX2 BlockTerms(const RoundedBase& base, int64_t first) {
    static_assert(kAvx2QueryForm.added == 1 << 6);
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const int64_t at = first + v * kAvx2Lanes;
      terms[v] = _mm256_loadu_ps(base.terms + at);
      scales[v] = _mm256_loadu_ps(base.scales + at);
      surplus[v] = _mm256_slli_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(base.sums + at)), 6);
    }
  }
};

// Stores the values of one query and says whether some may be within the limit. A NaN may be lost on the way; where
// there can be one the limit is infinite.
KITH_FOR_AVX2 inline bool finish(const BlockTerms& block, const PairSums& sums, float factor, float limit,
                                 float* values) {
  const __m256 f = _mm256_set1_ps(factor);
  const __m256 first = _mm256_fmadd_ps(_mm256_mul_ps(block.scales[0], f),
                                       _mm256_cvtepi32_ps(_mm256_sub_epi32(sums.v0, block.surplus[0])), block.terms[0]);
  const __m256 second =
      _mm256_fmadd_ps(_mm256_mul_ps(block.scales[1], f),
                      _mm256_cvtepi32_ps(_mm256_sub_epi32(sums.v1, block.surplus[1])), block.terms[1]);
  _mm256_storeu_ps(values, first);
  _mm256_storeu_ps(values + kAvx2Lanes, second);
  const __m256 within = _mm256_cmp_ps(_mm256_min_ps(first, second), _mm256_set1_ps(limit), _CMP_NGT_UQ);
  return _mm256_movemask_ps(within) != 0;
}

template <int kQueries>
KITH_FOR_AVX2 inline void multiply(const int32_t* queries, const int32_t* rows, const TileSteps& steps,
                                   PairSums (&sums)[kQueries]) {
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t u = 0; u < steps.words; ++u) {
    const __m256i r0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows));
    const __m256i r1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + kAvx2Lanes));
#pragma GCC unroll 3
    for (int q = 0; q < kQueries; ++q) sums[q].add(queries[q], r0, r1, ones);
    rows += steps.row_step;
    queries += steps.query_step;
  }
}

// A panel of rows against kQueries queries from `first_query` on.
template <int kQueries>
KITH_FOR_AVX2 void scan_few(const RoundedQueries& queries, int64_t first_query, const RoundedBase& base, int64_t panel,
                            const TileSteps& steps, PanelHits& hits) {
  const int64_t within = first_query % steps.query_step;
  const auto* const words = static_cast<const int32_t*>(queries.panels) + (first_query - within) * steps.words + within;
  const auto* const rows = static_cast<const int32_t*>(base.panels) + panel * steps.words * steps.row_step;
  float limits[kQueries];
  for (int q = 0; q < kQueries; ++q) limits[q] = queries.limit(first_query + q, base, panel);
  alignas(32) float values[kQueries][kMostRowsPerPanel];
  bool passed[kQueries] = {};
  for (int64_t at = 0; at < steps.row_step; at += kBlockRows) {
    PairSums sums[kQueries];
    multiply<kQueries>(words, rows + at, steps, sums);
    const BlockTerms block(base, panel * steps.row_step + at);
#pragma GCC unroll 3
    for (int q = 0; q < kQueries; ++q) {
      passed[q] |= finish(block, sums[q], queries.factors[first_query + q], limits[q], values[q] + at);
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    if (passed[q]) hits.on_hit(first_query + q, panel, values[q]);
  }
}

}  // namespace

void scan_rounded_avx2(const RoundedQueries& queries, const RoundedBase& base, int64_t first, int64_t count,
                       PanelHits& hits) {
  const PanelShape shape = panel_shape(PanelFormat::rounded);
  const TileSteps steps{rounded_words(base.cols), shape.rows_per_panel, shape.queries_per_panel};
  for (int64_t panel = first; panel < first + count; ++panel) {
    for (int64_t q = 0; q < queries.count;) {
      // Up to the end of a panel of queries.
      const int64_t left = std::min(queries.count - q, steps.query_step - q % steps.query_step);
      if (left >= kTogether) {
        scan_few<kTogether>(queries, q, base, panel, steps, hits);
        q += kTogether;
      } else if (left == 2) {
        scan_few<2>(queries, q, base, panel, steps, hits);
        q += 2;
      } else {
        scan_few<1>(queries, q, base, panel, steps, hits);
        q += 1;
      }
    }
  }
}

}  // namespace kith

#endif
