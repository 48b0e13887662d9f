// Products of bytes with ARM's UDOT and SDOT: four products to each 32-bit lane, by a query's four bytes broadcast from
// a lane. A tile is 8 queries by 12 rows: 24 registers of sums, 3 of rows, 2 of queries. The whole file is compiled for
// them, since clang declares their intrinsics only then.
#include "kernels/product/byte_product.hpp"
#include "kernels/product/instruction_family.hpp"

#if defined(KITH_ARM)

#include <arm_neon.h>

namespace kith {
namespace {

constexpr int kQueries = 8;
constexpr int kVectors = 3;
constexpr int kRows = 4 * kVectors;

struct Unsigned {
  template <int kLane>
  static inline int32x4_t dot(int32x4_t sum, uint8x16_t rows, uint8x16_t queries) {
    return vreinterpretq_s32_u32(vdotq_laneq_u32(vreinterpretq_u32_s32(sum), rows, queries, kLane));
  }
};

struct Signed {
  template <int kLane>
  static inline int32x4_t dot(int32x4_t sum, uint8x16_t rows, uint8x16_t queries) {
    return vdotq_laneq_s32(sum, vreinterpretq_s8_u8(rows), vreinterpretq_s8_u8(queries), kLane);
  }
};

template <typename Dot, int kLane>
inline void add_products(uint8x16_t queries, const uint8x16_t (&rows)[kVectors], int32x4_t (&sums)[kVectors]) {
#pragma GCC unroll 3
  for (int v = 0; v < kVectors; ++v) sums[v] = Dot::template dot<kLane>(sums[v], rows[v], queries);
}

template <typename Dot>
void scan_tile(const BytePanelQueries& queries, int64_t first_query, const uint8_t* query_panel, const uint8_t* rows,
               int64_t units, const BytePanelBase& base, int64_t panel, BytePanelHits& hits) {
  int32x4_t sums[kQueries][kVectors];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) sums[q][v] = vdupq_n_s32(0);
  }
  for (int64_t u = 0; u < units; ++u) {
    uint8x16_t r[kVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) r[v] = vld1q_u8(rows + 16 * v);
#pragma GCC unroll 2
    for (int q = 0; q < kQueries; q += 4) {
      const uint8x16_t four = vld1q_u8(query_panel + 4 * q);
      add_products<Dot, 0>(four, r, sums[q]);
      add_products<Dot, 1>(four, r, sums[q + 1]);
      add_products<Dot, 2>(four, r, sums[q + 2]);
      add_products<Dot, 3>(four, r, sums[q + 3]);
    }
    query_panel += 4 * kQueries;
    rows += 4 * kRows;
  }

  const int32_t* terms = base.terms + panel * kRows;
  int32x4_t t[kVectors];
#pragma GCC unroll 3
  for (int v = 0; v < kVectors; ++v) t[v] = vld1q_s32(terms + 4 * v);
  uint32x4_t any = vdupq_n_u32(0);
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
    const int32x4_t limit = vdupq_n_s32(queries.limits[first_query + q]);
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
    for (int i = 0; i < kRows; ++i) {
      passed |= static_cast<uint64_t>(values[q][i] <= queries.limits[first_query + q]) << i;
    }
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
  base.format == PanelFormat::i8 ? scan<Signed>(queries, base, first, count, hits)
                                 : scan<Unsigned>(queries, base, first, count, hits);
}

}  // namespace kith

#endif
