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

#define KITH_FOR_VNNI KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

namespace kith {
namespace {

constexpr int kQueries = 8;
constexpr int kLanes = 16;
constexpr int kRows = 3 * kLanes;

// The sums of one query. They are named, and the tile is stored before it is compared, since g++ would otherwise keep
// them in memory while it adds.
struct Sums {
  __m512i v0, v1, v2;

  KITH_FOR_VNNI Sums() : v0(_mm512_setzero_si512()), v1(v0), v2(v0) {}
  KITH_FOR_VNNI void add(int32_t four_bytes, __m512i r0, __m512i r1, __m512i r2) {
    const __m512i query = _mm512_set1_epi32(four_bytes);
    v0 = _mm512_dpbusd_epi32(v0, query, r0);
    v1 = _mm512_dpbusd_epi32(v1, query, r1);
    v2 = _mm512_dpbusd_epi32(v2, query, r2);
  }
  KITH_FOR_VNNI void store(int32_t* out) const {
    _mm512_store_si512(out, v0);
    _mm512_store_si512(out + kLanes, v1);
    _mm512_store_si512(out + 2 * kLanes, v2);
  }
};

KITH_FOR_VNNI __attribute__((noinline)) void multiply_tile(const int32_t* queries, const int32_t* rows, int64_t units,
                                                           int32_t (*out)[kRows]) {
  Sums s0, s1, s2, s3, s4, s5, s6, s7;
  for (int64_t u = 0; u < units; ++u) {
    const __m512i r0 = _mm512_load_si512(rows);
    const __m512i r1 = _mm512_load_si512(rows + kLanes);
    const __m512i r2 = _mm512_load_si512(rows + 2 * kLanes);
    s0.add(queries[0], r0, r1, r2);
    s1.add(queries[1], r0, r1, r2);
    s2.add(queries[2], r0, r1, r2);
    s3.add(queries[3], r0, r1, r2);
    s4.add(queries[4], r0, r1, r2);
    s5.add(queries[5], r0, r1, r2);
    s6.add(queries[6], r0, r1, r2);
    s7.add(queries[7], r0, r1, r2);
    queries += kQueries;
    rows += kRows;
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

// Turns the sums of one query into values, term - scale * sum, and says which are within the limit.
KITH_FOR_VNNI inline uint64_t finish_query(const BytePanelBase& base, int64_t panel, int32_t limit, int32_t* sums) {
  const __m128i shift = _mm_cvtsi32_si128(base.scale - 1);  // times 2 or 1
  uint64_t passed = 0;
#pragma GCC unroll 3
  for (int v = 0; v < kRows; v += kLanes) {
    const __m512i doubled = _mm512_sll_epi32(_mm512_load_si512(sums + v), shift);
    const __m512i value = _mm512_sub_epi32(_mm512_load_si512(base.terms + panel * kRows + v), doubled);
    _mm512_store_si512(sums + v, value);
    passed |= static_cast<uint64_t>(_mm512_cmple_epi32_mask(value, _mm512_set1_epi32(limit))) << v;
  }
  return passed;
}

KITH_FOR_VNNI void scan_tile(const BytePanelQueries& queries, int64_t first_query, const int32_t* query_panel,
                             const int32_t* rows, int64_t units, const BytePanelBase& base, int64_t panel,
                             BytePanelHits& hits) {
  alignas(64) int32_t values[kQueries][kRows];
  multiply_tile(query_panel, rows, units, values);
  uint64_t passed[kQueries];
  uint64_t any = 0;
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
    passed[q] = finish_query(base, panel, queries.limits[first_query + q], values[q]);
    any |= passed[q];
  }
  if (any == 0) return;  // nearly always
  for (int q = 0; q < kQueries && first_query + q < queries.count; ++q) {
    if (passed[q] != 0) hits.on_hit(first_query + q, panel, passed[q], values[q]);
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
