// Exact products of bytes with ARM's UDOT and SDOT (byte_tile_dotprod.hpp).
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_ARM)

#include "kernels/panels/byte_tile_dotprod.hpp"

namespace kith {
namespace {

constexpr int kQueries = kDotQueries;
constexpr int kVectors = kDotVectors;
constexpr int kRows = kDotRows;

template <typename Dot>
void scan_tile(const BytePanelQueries& queries, int64_t first_query, const uint8_t* query_panel, const uint8_t* rows,
               int64_t units, const BytePanelBase& base, int64_t panel, BytePanelHits& hits) {
  int32x4_t sums[kQueries][kVectors];
  multiply_tile<Dot>(query_panel, rows, units, sums);

  const int32_t* terms = base.terms + panel * kRows;
  int32x4_t t[kVectors];
#pragma GCC unroll 3
  for (int v = 0; v < kVectors; ++v) t[v] = vld1q_s32(terms + 4 * v);
  alignas(16) int32_t limits[kQueries];
  for (int q = 0; q < kQueries; ++q) limits[q] = queries.limit(first_query + q, panel);
  uint32x4_t any = vdupq_n_u32(0);
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
    const int32x4_t limit = vdupq_n_s32(limits[q]);
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      sums[q][v] = vmlsq_n_s32(t[v], sums[q][v], base.scale);
      any = vorrq_u32(any, vcleq_s32(sums[q][v], limit));
    }
  }
  if (vmaxvq_u32(any) == 0) return;  // nearly always

  alignas(16) int32_t values[kQueries][kRows];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) vst1q_s32(values[q] + 4 * v, sums[q][v]);
  }
  for (int q = 0; q < kQueries && first_query + q < queries.count; ++q) {
    uint64_t passed = 0;
    for (int i = 0; i < kRows; ++i) passed |= static_cast<uint64_t>(values[q][i] <= limits[q]) << i;
    if (passed != 0) hits.on_hit(first_query + q, panel, passed, values[q]);
  }
}

template <typename Dot>
void scan(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
          BytePanelHits& hits) {
  const int64_t bytes = packed_bytes(base.format, base.cols);
  for (int64_t panel = first; panel < first + count; ++panel) {
    const uint8_t* const rows = static_cast<const uint8_t*>(base.panels) + panel * kRows * bytes;
    for (int64_t q = 0; q < queries.count; q += kQueries) {
      scan_tile<Dot>(queries, q, static_cast<const uint8_t*>(queries.panels) + q * bytes, rows, bytes / 4, base, panel,
                     hits);
    }
  }
}

}  // namespace

void scan_bytes_dotprod(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                        BytePanelHits& hits) {
  base.format == PanelFormat::i8 ? scan<SignedDot>(queries, base, first, count, hits)
                                 : scan<UnsignedDot>(queries, base, first, count, hits);
}

}  // namespace kith

#endif
