// Exact products of bytes with AVX-512's VNNI (byte_tile_vnni.hpp).
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/panels/byte_tile_vnni.hpp"

namespace kith {
namespace {

constexpr int kQueries = kVnniQueries;
constexpr int kLanes = kVnniLanes;
constexpr int kRows = kVnniRows;

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
    passed[q] = finish_query(base, panel, queries.limit(first_query + q, panel), values[q]);
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
