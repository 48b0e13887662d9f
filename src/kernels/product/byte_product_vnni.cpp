// Products of bytes with AVX-512's VNNI: four products of an unsigned and a signed byte to each 32-bit lane. A tile is
// 8 queries by 48 rows: 24 registers of sums, 3 of rows, and a query's four bytes broadcast from memory.
#include "kernels/product/byte_product.hpp"
#include "kernels/product/instruction_family.hpp"

#if defined(KITH_X86)

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"  // false ones, from g++'s own intrinsics
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace kith {
namespace {

constexpr int kQueries = 8;
constexpr int kVectors = 3;
constexpr int kLanes = 16;
constexpr int kRows = kLanes * kVectors;

KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")
void scan_tile(const BytePanelQueries& queries, int64_t first_query, const int32_t* query_panel, const int32_t* rows,
               int64_t units, const BytePanelBase& base, int64_t panel, BytePanelHits& hits) {
  __m512i sums[kQueries][kVectors];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) sums[q][v] = _mm512_setzero_si512();
  }
  for (int64_t u = 0; u < units; ++u) {
    const __m512i r0 = _mm512_load_si512(rows);
    const __m512i r1 = _mm512_load_si512(rows + kLanes);
    const __m512i r2 = _mm512_load_si512(rows + 2 * kLanes);
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
      const __m512i query = _mm512_set1_epi32(query_panel[q]);
      sums[q][0] = _mm512_dpbusd_epi32(sums[q][0], query, r0);
      sums[q][1] = _mm512_dpbusd_epi32(sums[q][1], query, r1);
      sums[q][2] = _mm512_dpbusd_epi32(sums[q][2], query, r2);
    }
    query_panel += kQueries;
    rows += kRows;
  }

  const int32_t* terms = base.terms + panel * kRows;
  __m512i t[kVectors];
#pragma GCC unroll 3
  for (int v = 0; v < kVectors; ++v) t[v] = _mm512_load_si512(terms + v * kLanes);
  const __m128i shift = _mm_cvtsi32_si128(base.scale - 1);  // times 2 or 1
  uint32_t any = 0;
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) sums[q][v] = _mm512_sub_epi32(t[v], _mm512_sll_epi32(sums[q][v], shift));
    const __m512i least = _mm512_min_epi32(_mm512_min_epi32(sums[q][0], sums[q][1]), sums[q][2]);
    const __m512i limit = _mm512_set1_epi32(queries.limits[first_query + q]);
    any |= static_cast<uint32_t>(_mm512_cmple_epi32_mask(least, limit) != 0) << q;
  }
  if (any == 0) return;  // nearly always

  alignas(64) int32_t values[kQueries][kRows];
  uint64_t passed[kQueries];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
    const __m512i limit = _mm512_set1_epi32(queries.limits[first_query + q]);
    passed[q] = 0;
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      _mm512_store_si512(values[q] + v * kLanes, sums[q][v]);
      passed[q] |= static_cast<uint64_t>(_mm512_cmple_epi32_mask(sums[q][v], limit)) << (v * kLanes);
    }
  }
  for (; any != 0; any &= any - 1) {
    const int q = __builtin_ctz(any);
    if (first_query + q < queries.count) hits.on_hit(first_query + q, panel, passed[q], values[q]);
  }
}

}  // namespace

void scan_bytes_vnni(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                     BytePanelHits& hits) {
  const int64_t units = packed_bytes(base.format, base.cols) / 4;
  for (int64_t panel = first; panel < first + count; ++panel) {
    const int32_t* const rows = static_cast<const int32_t*>(base.panels) + panel * kRows * units;
    for (int64_t q = 0; q < queries.count; q += kQueries) {
      scan_tile(queries, q, static_cast<const int32_t*>(queries.panels) + q * units, rows, units, base, panel, hits);
    }
  }
}

}  // namespace kith

#endif
