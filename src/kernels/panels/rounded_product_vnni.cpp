// Products of vectors rounded to bytes with AVX-512's VNNI (byte_tile_vnni.hpp): a query's bytes have 128 added, which
// a row's sum of bytes takes back.
#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/rounded_panels.hpp"

#if defined(KITH_X86)

#include "kernels/panels/byte_tile_vnni.hpp"

#include <algorithm>
#include <bit>

namespace kith {
namespace {

constexpr int kQueries = kVnniQueries;
constexpr int kLanes = kVnniLanes;
constexpr int kRows = kVnniRows;
constexpr int64_t kFewQueries = 3;  // so few are faster one by one than as a panel

// A panel of rows: what turns sums into values.
struct PanelTerms {
  __m512 terms[3];
  __m512 scales[3];
  __m512i surplus[3];
};

KITH_FOR_VNNI inline PanelTerms terms_of(const RoundedBase& base, int64_t panel) {
  PanelTerms out;
#pragma GCC unroll 3
  for (int v = 0; v < 3; ++v) {
    const int64_t at = panel * kRows + v * kLanes;
    out.terms[v] = _mm512_loadu_ps(base.terms + at);
    out.scales[v] = _mm512_loadu_ps(base.scales + at);
    out.surplus[v] = _mm512_slli_epi32(_mm512_loadu_si512(base.sums + at), 7);
  }
  return out;
}

// Turns the sums of one query into values, in place, and says whether some may be within the limit. A NaN may be lost
// on the way; where there can be one the limit is infinite.
KITH_FOR_VNNI inline bool finish_query(const PanelTerms& panel, float factor, float limit, int32_t* sums) {
  const __m512 f = _mm512_set1_ps(factor);
  __m512 least = _mm512_setzero_ps();
#pragma GCC unroll 3
  for (int v = 0; v < 3; ++v) {
    const __m512i sum = _mm512_sub_epi32(_mm512_load_si512(sums + v * kLanes), panel.surplus[v]);
    const __m512 value = _mm512_fmadd_ps(_mm512_mul_ps(panel.scales[v], f), _mm512_cvtepi32_ps(sum), panel.terms[v]);
    _mm512_store_si512(sums + v * kLanes, _mm512_castps_si512(value));
    least = v == 0 ? value : _mm512_min_ps(least, value);
  }
  return _mm512_cmp_ps_mask(least, _mm512_set1_ps(limit), _CMP_NGT_UQ) != 0;
}

// A panel of rows against a panel of queries, of which the last may hold few.
KITH_FOR_VNNI void scan_tile(const RoundedQueries& queries, int64_t first_query, const RoundedBase& base, int64_t panel,
                             const PanelTerms& terms, PanelHits& hits) {
  const int64_t words = rounded_words(base.cols);
  const auto* const rows = static_cast<const int32_t*>(base.panels) + panel * words * kRows;
  const auto* const query_panel = static_cast<const int32_t*>(queries.panels) + first_query * words;
  const int64_t count = std::min<int64_t>(kQueries, queries.count - first_query);
  alignas(64) int32_t values[kQueries][kRows];
  if (count > kFewQueries) {
    multiply_tile(query_panel, rows, words, values);
  } else {
    for (int64_t q = 0; q < count; ++q) multiply_one(query_panel + q, rows, words, values[q]);
  }
  uint32_t passed = 0;
  for (int64_t q = 0; q < count; ++q) {
    const float limit = queries.limit(first_query + q, base, panel);
    passed |= finish_query(terms, queries.factors[first_query + q], limit, values[q]) ? 1u << q : 0u;
  }
  for (; passed != 0; passed &= passed - 1) {
    const int q = std::countr_zero(passed);
    hits.on_hit(first_query + q, panel, reinterpret_cast<const float*>(values[q]));
  }
}

}  // namespace

KITH_FOR_VNNI void scan_rounded_vnni(const RoundedQueries& queries, const RoundedBase& base, int64_t first,
                                     int64_t count, PanelHits& hits) {
  for (int64_t panel = first; panel < first + count; ++panel) {
    const PanelTerms terms = terms_of(base, panel);
    for (int64_t q = 0; q < queries.count; q += kQueries) scan_tile(queries, q, base, panel, terms, hits);
  }
}

}  // namespace kith

#endif
