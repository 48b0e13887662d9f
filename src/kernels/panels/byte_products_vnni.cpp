// Products of bytes with AVX-512's VNNI, of exact bytes and of vectors rounded to bytes: four products of an unsigned
// byte of a query and a signed one of a row to each 32-bit lane. 8 queries by 48 rows: 24 registers of sums, 3 of rows,
// and a query's four bytes broadcast from memory. Rounded, a query's bytes have 128 added, which a row's sum of bytes
// takes back.
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/rounded_panels.hpp"

#if defined(KITH_X86)

#include "kernels/panels/x86_intrinsics.hpp"

#include <algorithm>
#include <bit>

#define KITH_FOR_VNNI KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

namespace kith {
namespace {

constexpr int kVnniQueries = 8;
constexpr int kVnniLanes = 16;
constexpr int kVnniRows = 3 * kVnniLanes;

// The sums of one query. They are named, and the tile is stored before it is compared, since g++ would otherwise keep
// them in memory while it adds.
struct VnniSums {
  __m512i v0, v1, v2;

  KITH_FOR_VNNI VnniSums() : v0(_mm512_setzero_si512()), v1(v0), v2(v0) {}
  KITH_FOR_VNNI void add(int32_t four_bytes, __m512i r0, __m512i r1, __m512i r2) {
    const __m512i query = _mm512_set1_epi32(four_bytes);
    v0 = _mm512_dpbusd_epi32(v0, query, r0);
    v1 = _mm512_dpbusd_epi32(v1, query, r1);
    v2 = _mm512_dpbusd_epi32(v2, query, r2);
  }
  KITH_FOR_VNNI void store(int32_t* out) const {
    _mm512_store_si512(out, v0);
    _mm512_store_si512(out + kVnniLanes, v1);
    _mm512_store_si512(out + 2 * kVnniLanes, v2);
  }
};

// The sums of a panel of queries with one of rows, of `units` words of four columns. Each row of `out` is aligned.
KITH_FOR_VNNI __attribute__((noinline)) inline void multiply_tile(const int32_t* queries, const int32_t* rows,
                                                                  int64_t units, int32_t (*out)[kVnniRows]) {
  VnniSums s0, s1, s2, s3, s4, s5, s6, s7;
  for (int64_t u = 0; u < units; ++u) {
    const __m512i r0 = _mm512_load_si512(rows);
    const __m512i r1 = _mm512_load_si512(rows + kVnniLanes);
    const __m512i r2 = _mm512_load_si512(rows + 2 * kVnniLanes);
    s0.add(queries[0], r0, r1, r2);
    s1.add(queries[1], r0, r1, r2);
    s2.add(queries[2], r0, r1, r2);
    s3.add(queries[3], r0, r1, r2);
    s4.add(queries[4], r0, r1, r2);
    s5.add(queries[5], r0, r1, r2);
    s6.add(queries[6], r0, r1, r2);
    s7.add(queries[7], r0, r1, r2);
    queries += kVnniQueries;
    rows += kVnniRows;
  }
  s0.store(out[0]);
  s1.store(out[1]);
  s2.store(out[2]);
  s3.store(out[3]);
  s4.store(out[4]);
  s5.store(out[5]);
  s6.store(out[6]);
  s7.store(out[7]);
}

// The same for one query of its panel. It takes less time than its rows take from memory, so it asks for those to come.
KITH_FOR_VNNI inline void multiply_one(const int32_t* query, const int32_t* rows, int64_t units, int32_t* out) {
  constexpr int64_t kAhead = 4096 / 4;  // words
  VnniSums sums;
  for (int64_t u = 0; u < units; ++u) {
    __builtin_prefetch(rows + kAhead);
    __builtin_prefetch(rows + kAhead + kVnniLanes);
    __builtin_prefetch(rows + kAhead + 2 * kVnniLanes);
    const __m512i r0 = _mm512_load_si512(rows);
    const __m512i r1 = _mm512_load_si512(rows + kVnniLanes);
    const __m512i r2 = _mm512_load_si512(rows + 2 * kVnniLanes);
    sums.add(query[u * kVnniQueries], r0, r1, r2);
    rows += kVnniRows;
  }
  sums.store(out);
}

// Turns the sums of one query into values, term - scale * sum, and says which are within the limit.
KITH_FOR_VNNI inline uint64_t finish_bytes(const BytePanelBase& base, int64_t panel, int32_t limit, int32_t* sums) {
  const __m128i shift = _mm_cvtsi32_si128(base.scale - 1);  // times 2 or 1
  uint64_t passed = 0;
#pragma GCC unroll 3
  for (int v = 0; v < kVnniRows; v += kVnniLanes) {
    const __m512i doubled = _mm512_sll_epi32(_mm512_load_si512(sums + v), shift);
    const __m512i value = _mm512_sub_epi32(_mm512_load_si512(base.terms + panel * kVnniRows + v), doubled);
    _mm512_store_si512(sums + v, value);
    passed |= static_cast<uint64_t>(_mm512_cmple_epi32_mask(value, _mm512_set1_epi32(limit))) << v;
  }
  return passed;
}

KITH_FOR_VNNI void scan_bytes(const BytePanelQueries& queries, int64_t first_query, const int32_t* query_panel,
                              const int32_t* rows, int64_t units, const BytePanelBase& base, int64_t panel,
                              BytePanelHits& hits) {
  alignas(64) int32_t values[kVnniQueries][kVnniRows];
  multiply_tile(query_panel, rows, units, values);
  uint64_t passed[kVnniQueries];
  uint64_t any = 0;
#pragma GCC unroll 8
  for (int q = 0; q < kVnniQueries; ++q) {
    passed[q] = finish_bytes(base, panel, queries.limit(first_query + q, panel), values[q]);
    any |= passed[q];
  }
  if (any == 0) return;  // nearly always
  for (int q = 0; q < kVnniQueries && first_query + q < queries.count; ++q) {
    if (passed[q] != 0) hits.on_hit(first_query + q, panel, passed[q], values[q]);
  }
}

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
    const int64_t at = panel * kVnniRows + v * kVnniLanes;
    out.terms[v] = _mm512_loadu_ps(base.terms + at);
    out.scales[v] = _mm512_loadu_ps(base.scales + at);
    out.surplus[v] = _mm512_slli_epi32(_mm512_loadu_si512(base.sums + at), 7);
  }
  return out;
}

// Turns the sums of one query into values, in place, and says whether some may be within the limit. A NaN may be lost
// on the way; where there can be one the limit is infinite.
KITH_FOR_VNNI inline bool finish_rounded(const PanelTerms& panel, float factor, float limit, int32_t* sums) {
  const __m512 f = _mm512_set1_ps(factor);
  __m512 least = _mm512_setzero_ps();
#pragma GCC unroll 3
  for (int v = 0; v < 3; ++v) {
    const __m512i sum = _mm512_sub_epi32(_mm512_load_si512(sums + v * kVnniLanes), panel.surplus[v]);
    const __m512 value = _mm512_fmadd_ps(_mm512_mul_ps(panel.scales[v], f), _mm512_cvtepi32_ps(sum), panel.terms[v]);
    _mm512_store_si512(sums + v * kVnniLanes, _mm512_castps_si512(value));
    least = v == 0 ? value : _mm512_min_ps(least, value);
  }
  return _mm512_cmp_ps_mask(least, _mm512_set1_ps(limit), _CMP_NGT_UQ) != 0;
}

// A panel of rows against a panel of queries, of which the last may hold few.
KITH_FOR_VNNI void scan_rounded(const RoundedQueries& queries, int64_t first_query, const RoundedBase& base,
                                int64_t panel, const PanelTerms& terms, PanelHits& hits) {
  const int64_t words = rounded_words(base.cols);
  const auto* const rows = static_cast<const int32_t*>(base.panels) + panel * words * kVnniRows;
  const auto* const query_panel = static_cast<const int32_t*>(queries.panels) + first_query * words;
  const int64_t count = std::min<int64_t>(kVnniQueries, queries.count - first_query);
  alignas(64) int32_t values[kVnniQueries][kVnniRows];
  if (count > kFewQueries) {
    multiply_tile(query_panel, rows, words, values);
  } else {
    for (int64_t q = 0; q < count; ++q) multiply_one(query_panel + q, rows, words, values[q]);
  }
  uint32_t passed = 0;
  for (int64_t q = 0; q < count; ++q) {
    const float limit = queries.limit(first_query + q, base, panel);
    passed |= finish_rounded(terms, queries.factors[first_query + q], limit, values[q]) ? 1u << q : 0u;
  }
  for (; passed != 0; passed &= passed - 1) {
    const int q = std::countr_zero(passed);
    hits.on_hit(first_query + q, panel, reinterpret_cast<const float*>(values[q]));
  }
}

}  // namespace

void scan_bytes_vnni(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                     BytePanelHits& hits) {
  const int64_t units = packed_bytes(base.format, base.cols) / 4;
  for (int64_t panel = first; panel < first + count; ++panel) {
    const int32_t* const rows = static_cast<const int32_t*>(base.panels) + panel * kVnniRows * units;
    for (int64_t q = 0; q < queries.count; q += kVnniQueries) {
      scan_bytes(queries, q, static_cast<const int32_t*>(queries.panels) + q * units, rows, units, base, panel, hits);
    }
  }
}

KITH_FOR_VNNI void scan_rounded_vnni(const RoundedQueries& queries, const RoundedBase& base, int64_t first,
                                     int64_t count, PanelHits& hits) {
  for (int64_t panel = first; panel < first + count; ++panel) {
    const PanelTerms terms = terms_of(base, panel);
    for (int64_t q = 0; q < queries.count; q += kVnniQueries) scan_rounded(queries, q, base, panel, terms, hits);
  }
}

}  // namespace kith

#endif
