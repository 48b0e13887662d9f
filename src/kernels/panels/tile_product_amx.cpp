// Matrix products by AMX's tiles: 16 rows of 64 bytes in a register, 16 x 16 results in another. A block is 32 queries
// by 32 rows, four tiles of sums, so that each tile of queries and of rows that is loaded is used twice. The sums go to
// a small buffer, where vectors compare them with the limits.
//
// A product takes as long as comparing the one before it, which is done meanwhile: sums are compared only when those of
// the next block are on their way, and would otherwise be waited for.
//
// Bytes are multiplied exactly. Floats rounded to bytes (rounded_panels.hpp) are too, and scaled afterwards. Other floats come as two bf16 parts each (panel_format.hpp): the product of the high parts alone rules most blocks out; where it does
// not, the products with the low parts are added to the same sums, and narrower bounds decide. So the worst data cost three products and common data little more than one.
//
// Cost: a block takes cols / 64 (bytes) or cols / 32 (bf16) steps of four loads and four products of 16 cycles.
#include "kernels/panels/all_values.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/panel_product.hpp"
#include "kernels/panels/rounded_panels.hpp"

#if defined(KITH_X86)

#include "kernels/panels/tile_setup_amx.hpp"

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"  // false ones, from g++'s own intrinsics
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <bit>

#define KITH_FOR_AMX KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-int8,amx-bf16")

namespace kith {
namespace {

constexpr int kLanes = 16;
constexpr int kSide = 32;  // queries, and rows, of a block

// The sums of a block, query by query.
struct BlockSums {
  alignas(64) int32_t values[kSide][kSide];
  const float* floats(int q) const { return reinterpret_cast<const float*>(values[q]); }
};

enum class TileKind { u8, i8, bf16 };

// A panel of rows and the first of a panel's queries.
struct BlockNumber {
  int64_t panel = -1;  // none
  int64_t query = 0;
};

// Where the tiles of a block lie.
struct BlockPlace {
  const std::byte* queries = nullptr;  // row by row
  const std::byte* rows = nullptr;     // a panel
  int64_t units = 0;                   // of a vector's part
  int64_t units_per_step = 0;
  int64_t first = 0;  // unit, and the one after the last
  int64_t end = 0;
};

// All of the four sums start from the rows' terms, which a stride of 0 repeats for each query.
KITH_FOR_AMX inline void start_sums(const void* terms) {
  const auto* const first = static_cast<const std::byte*>(terms);
  _tile_loadd(0, first, 0);
  _tile_loadd(1, first + 64, 0);
  _tile_loadd(2, first, 0);
  _tile_loadd(3, first + 64, 0);
}

template <TileKind kKind>
KITH_FOR_AMX inline void add_products(const BlockPlace& place) {
  const int64_t query_stride = 4 * place.units;
  constexpr int64_t kRowStride = 4 * kSide;
  const std::byte* queries = place.queries + 4 * place.first;
  const std::byte* rows = place.rows + kRowStride * place.first;
  for (int64_t u = place.first; u < place.end; u += place.units_per_step) {
    _tile_loadd(4, queries, query_stride);
    _tile_loadd(6, rows, kRowStride);
    _tile_loadd(7, rows + 64, kRowStride);
    _tile_loadd(5, queries + kLanes * query_stride, query_stride);
    if constexpr (kKind == TileKind::u8) {
      _tile_dpbuud(0, 4, 6);
      _tile_dpbuud(1, 4, 7);
      _tile_dpbuud(2, 5, 6);
      _tile_dpbuud(3, 5, 7);
    } else if constexpr (kKind == TileKind::i8) {
      _tile_dpbssd(0, 4, 6);
      _tile_dpbssd(1, 4, 7);
      _tile_dpbssd(2, 5, 6);
      _tile_dpbssd(3, 5, 7);
    } else {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    queries += 4 * place.units_per_step;
    rows += kRowStride * place.units_per_step;
  }
}

KITH_FOR_AMX inline void store_sums(BlockSums& sums) {
  constexpr int64_t kStride = 4 * kSide;
  _tile_stored(0, sums.values[0], kStride);
  _tile_stored(1, sums.values[0] + kLanes, kStride);
  _tile_stored(2, sums.values[kLanes], kStride);
  _tile_stored(3, sums.values[kLanes] + kLanes, kStride);
}

// --- bytes -----------------------------------------------------------------------------------------------------------

// value = term - scale * product. The tiles hold sum = product - floor(term / scale), so that value is -scale * sum, or
// one more where a term is odd: a value within the limit has a sum of at least -floor(limit / scale).
KITH_FOR_AMX inline void byte_starts(const int32_t* terms, int shift, int32_t* starts) {
  const __m128i count = _mm_cvtsi32_si128(shift);
  for (int i = 0; i < kSide; i += kLanes) {
    const __m512i halves = _mm512_sra_epi32(_mm512_load_si512(terms + i), count);
    _mm512_store_si512(starts + i, _mm512_sub_epi32(_mm512_setzero_si512(), halves));
  }
}

KITH_FOR_AMX void report_bytes(const BytePanelQueries& queries, int64_t first_query, const BlockSums& sums,
                               const int32_t* least, const BytePanelBase& base, int64_t panel, BytePanelHits& hits) {
  const __m128i shift = _mm_cvtsi32_si128(base.scale - 1);
  const int32_t* const terms = base.terms + panel * kSide;
  // What halving took from the terms: 0 or 1.
  __m512i odd[2];
  for (int v = 0; v < 2; ++v) {
    const __m512i term = _mm512_load_si512(terms + v * kLanes);
    odd[v] = _mm512_sub_epi32(term, _mm512_sll_epi32(_mm512_sra_epi32(term, shift), shift));
  }
  // Without a branch for each: which of them has one is as good as random.
  uint32_t some = 0;
#pragma GCC unroll 8
  for (int q = 0; q < kSide; ++q) {
    const __m512i most =
        _mm512_max_epi32(_mm512_load_si512(sums.values[q]), _mm512_load_si512(sums.values[q] + kLanes));
    const __mmask16 any = _mm512_cmpge_epi32_mask(most, _mm512_set1_epi32(least[q]));
    some = some >> 1 | static_cast<uint32_t>(any != 0) << (kSide - 1);
  }
  if (const int64_t count = queries.count - first_query; count < kSide) some &= (1u << count) - 1;
  for (; some != 0; some &= some - 1) {
    const int q = std::countr_zero(some);
    const __m512i sum0 = _mm512_load_si512(sums.values[q]);
    const __m512i sum1 = _mm512_load_si512(sums.values[q] + kLanes);
    const __m512i value0 = _mm512_sub_epi32(odd[0], _mm512_sll_epi32(sum0, shift));
    const __m512i value1 = _mm512_sub_epi32(odd[1], _mm512_sll_epi32(sum1, shift));
    const __m512i limit = _mm512_set1_epi32(queries.limit(first_query + q, panel));
    const uint64_t passed = static_cast<uint64_t>(_mm512_cmple_epi32_mask(value0, limit)) |
                            static_cast<uint64_t>(_mm512_cmple_epi32_mask(value1, limit)) << kLanes;
    if (passed == 0) continue;
    alignas(64) int32_t values[kSide];
    _mm512_store_si512(values, value0);
    _mm512_store_si512(values + kLanes, value1);
    hits.on_hit(first_query + q, panel, passed, values);
  }
}

// Of the block whose sums these are.
KITH_FOR_AMX inline void compare_bytes(const BytePanelQueries& queries, int64_t first_query, const BlockSums& sums,
                                       const BytePanelBase& base, int64_t panel, BytePanelHits& hits) {
  alignas(64) int32_t least[kSide];
  for (int i = 0; i < kSide; i += kLanes) {
    __m512i limits = _mm512_loadu_si512(queries.limits + first_query + i);
    if (queries.row_limits != nullptr) {
      const __m512i of_rows = _mm512_sub_epi32(_mm512_set1_epi32(queries.row_limits[panel]),
                                               _mm512_loadu_si512(queries.offsets + first_query + i));
      limits = _mm512_max_epi32(limits, of_rows);
    }
    const __m512i halves = _mm512_sra_epi32(limits, _mm_cvtsi32_si128(base.scale - 1));
    _mm512_store_si512(least + i, _mm512_sub_epi32(_mm512_setzero_si512(), halves));
  }
  __mmask16 any = 0;
#pragma GCC unroll 8
  for (int i = 0; i < kSide; ++i) {
    const __m512i most =
        _mm512_max_epi32(_mm512_load_si512(sums.values[i]), _mm512_load_si512(sums.values[i] + kLanes));
    any = _kor_mask16(any, _mm512_cmpge_epi32_mask(most, _mm512_set1_epi32(least[i])));
  }
  if (any != 0) report_bytes(queries, first_query, sums, least, base, panel, hits);
}

template <TileKind kKind>
KITH_FOR_AMX void scan_bytes(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                             BytePanelHits& hits) {
  const int64_t units = units_per_part(base.format, base.cols);
  const int64_t step = columns_per_step(base.format, base.cols) / 4;
  const TileSetup setup(step);
  BlockSums sums[2];
  BlockNumber before;
  int turn = 0;
  alignas(64) int32_t starts[kSide];
  for (int64_t panel = first; panel < first + count; ++panel) {
    byte_starts(base.terms + panel * kSide, base.scale - 1, starts);
    const std::byte* const rows = static_cast<const std::byte*>(base.panels) + panel * kSide * 4 * units;
    for (int64_t q = 0; q < queries.count; q += kSide) {
      start_sums(starts);
      add_products<kKind>({static_cast<const std::byte*>(queries.panels) + q * 4 * units, rows, units, step, 0, units});
      store_sums(sums[turn]);
      turn ^= 1;
      if (before.panel >= 0) compare_bytes(queries, before.query, sums[turn], base, before.panel, hits);
      before = {panel, q};
    }
  }
  if (before.panel >= 0) compare_bytes(queries, before.query, sums[turn ^ 1], base, before.panel, hits);
}

// --- floats rounded to bytes -----------------------------------------------------------------------------------------

// A panel of rows: what turns sums into values, term + factor scale sum.
struct RoundedPanel {
  __m512 terms[2];
  __m512 scales[2];
};

KITH_FOR_AMX inline RoundedPanel rounded_panel(const RoundedBase& base, int64_t panel) {
  RoundedPanel out;
  for (int v = 0; v < 2; ++v) {
    out.terms[v] = _mm512_loadu_ps(base.terms + panel * kSide + v * kLanes);
    out.scales[v] = _mm512_loadu_ps(base.scales + panel * kSide + v * kLanes);
  }
  return out;
}

KITH_FOR_AMX inline __m512 rounded_values(const RoundedPanel& panel, const BlockSums& sums, int query, int half,
                                          __m512 factor) {
  const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(sums.values[query] + half * kLanes));
  return _mm512_fmadd_ps(_mm512_mul_ps(panel.scales[half], factor), sum, panel.terms[half]);
}

KITH_FOR_AMX inline void compare_rounded(const RoundedQueries& queries, int64_t first_query, const BlockSums& sums,
                                         const RoundedBase& base, int64_t panel, PanelHits& hits) {
  alignas(64) float limits[kSide];
  const __m512 norm = _mm512_set1_ps(base.norms[panel]);
  const __m512 residual = _mm512_set1_ps(base.residuals[panel]);
  for (int i = 0; i < kSide; i += kLanes) {
    const int64_t at = first_query + i;
    const __m512 slope = _mm512_add_ps(_mm512_loadu_ps(queries.linear + at),
                                       _mm512_mul_ps(norm, _mm512_loadu_ps(queries.quadratic + at)));
    const __m512 bound = _mm512_add_ps(_mm512_add_ps(_mm512_loadu_ps(queries.constant + at), _mm512_mul_ps(norm, slope)),
                                       _mm512_mul_ps(residual, _mm512_loadu_ps(queries.tilt + at)));
    _mm512_store_ps(limits + i, _mm512_add_ps(_mm512_loadu_ps(queries.limits + at), bound));
  }
  const RoundedPanel terms = rounded_panel(base, panel);
  // A NaN may be lost on the way; where there can be one the limit is infinite.
  const auto passes = [&](int i) KITH_FOR_AMX {
    const __m512 factor = _mm512_set1_ps(queries.factors[first_query + i]);
    const __m512 first = rounded_values(terms, sums, i, 0, factor);
    const __m512 least = _mm512_min_ps(first, rounded_values(terms, sums, i, 1, factor));
    return _mm512_cmp_ps_mask(least, _mm512_set1_ps(limits[i]), _CMP_NGT_UQ);
  };
  __mmask16 any = 0;
#pragma GCC unroll 8
  for (int i = 0; i < kSide; ++i) any = _kor_mask16(any, passes(i));
  if (any == 0) return;
  alignas(64) float values[kSide];
  for (int i = 0; i < kSide && first_query + i < queries.count; ++i) {
    if (passes(i) == 0) continue;
    const __m512 factor = _mm512_set1_ps(queries.factors[first_query + i]);
    _mm512_store_ps(values, rounded_values(terms, sums, i, 0, factor));
    _mm512_store_ps(values + kLanes, rounded_values(terms, sums, i, 1, factor));
    hits.on_hit(first_query + i, panel, values);
  }
}

// --- floats ----------------------------------------------------------------------------------------------------------

// What each query of a block accepts from rows of this norm: limit + constant + norm * (linear + norm * quadratic).
KITH_FOR_AMX inline void block_limits(const PanelQueries& queries, int64_t first, float norm, bool wide, float* out) {
  const __m512 n = _mm512_set1_ps(norm);
  for (int i = 0; i < kSide; i += kLanes) {
    const int64_t at = first + i;
    const __m512 constant = _mm512_loadu_ps((wide ? queries.wide_constant : queries.constant) + at);
    const __m512 linear = _mm512_loadu_ps((wide ? queries.wide_linear : queries.linear) + at);
    const __m512 slope = _mm512_add_ps(linear, _mm512_mul_ps(n, _mm512_loadu_ps(queries.quadratic + at)));
    const __m512 bound = _mm512_add_ps(constant, _mm512_mul_ps(n, slope));
    _mm512_store_ps(out + i, _mm512_add_ps(_mm512_loadu_ps(queries.limits + at), bound));
  }
}

// Adds products to sums that lie in memory, segment by segment (error_bound.hpp).
KITH_FOR_AMX void add_segments(BlockPlace place, BlockSums& totals) {
  BlockSums segment;
  const int64_t units = kSegmentColumns / 2 / place.units_per_step * place.units_per_step;
  for (int64_t first = 0; first < place.units; first += units) {
    place.first = first;
    place.end = first + units < place.units ? first + units : place.units;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    add_products<TileKind::bf16>(place);
    store_sums(segment);
    for (int q = 0; q < kSide; ++q) {
      for (int i = 0; i < kSide; i += kLanes) {
        float* const total = reinterpret_cast<float*>(totals.values[q]) + i;
        _mm512_store_ps(total, _mm512_add_ps(_mm512_load_ps(total), _mm512_load_ps(segment.floats(q) + i)));
      }
    }
  }
}

// Every query's sums, as the rows' terms.
KITH_FOR_AMX void start_totals(const float* terms, BlockSums& totals) {
  for (int q = 0; q < kSide; ++q) {
    for (int i = 0; i < kSide; i += kLanes) _mm512_store_si512(totals.values[q] + i, _mm512_load_si512(terms + i));
  }
}

// Whether a value of query q may pass. Where a value can be a NaN the limit is infinite, and everything passes.
KITH_FOR_AMX inline __mmask16 may_pass(const BlockSums& sums, int q, float limit) {
  const __m512 least = _mm512_min_ps(_mm512_load_ps(sums.floats(q)), _mm512_load_ps(sums.floats(q) + kLanes));
  return _mm512_cmp_ps_mask(least, _mm512_set1_ps(limit), _CMP_NGT_UQ);
}

KITH_FOR_AMX inline bool all_zero(const std::byte* bytes, int64_t count) {
  __m512i any = _mm512_setzero_si512();
  for (int64_t i = 0; i < count; i += 64) any = _mm512_or_si512(any, _mm512_loadu_si512(bytes + i));
  return _mm512_test_epi32_mask(any, any) == 0;
}

}  // namespace

KITH_FOR_AMX void scan_panels_amx(const PanelQueries& queries, const PanelBase& base, int64_t first, int64_t count,
                                  PanelHits& hits) {
  const int64_t units = units_per_part(PanelFormat::bf16, base.cols);
  const int64_t step = columns_per_step(PanelFormat::bf16, base.cols) / 2;
  const int64_t part = kSide * 4 * units;  // bytes, of a panel of either
  const bool segments = has_segments(base.cols);
  const TileSetup setup(step);
  BlockSums sums;
  alignas(64) float limits[kSide];
  for (int64_t panel = first; panel < first + count; ++panel) {
    const float* const terms = base.terms + panel * kSide;
    const std::byte* const high_rows = static_cast<const std::byte*>(base.panels) + panel * 2 * part;
    const std::byte* const low_rows = high_rows + part;
    for (int64_t q = 0; q < queries.count; q += kSide) {
      const std::byte* const high_queries = static_cast<const std::byte*>(queries.panels) + q * 8 * units;
      const std::byte* const low_queries = high_queries + part;
      if (segments) {
        start_totals(terms, sums);
        add_segments({high_queries, high_rows, units, step}, sums);
      } else {
        start_sums(terms);
        add_products<TileKind::bf16>({high_queries, high_rows, units, step, 0, units});
        store_sums(sums);
      }
      block_limits(queries, q, base.norms[panel], true, limits);
      __mmask16 any = 0;
#pragma GCC unroll 8
      for (int i = 0; i < kSide; ++i) any = _kor_mask16(any, may_pass(sums, i, limits[i]));
      if (any == 0) continue;

      if (segments) {
        add_segments({high_queries, low_rows, units, step}, sums);
        add_segments({low_queries, high_rows, units, step}, sums);
      } else {
        add_products<TileKind::bf16>({high_queries, low_rows, units, step, 0, units});
        add_products<TileKind::bf16>({low_queries, high_rows, units, step, 0, units});
        store_sums(sums);
      }
      block_limits(queries, q, base.norms[panel], false, limits);
      for (int i = 0; i < kSide && q + i < queries.count; ++i) {
        if (may_pass(sums, i, limits[i]) != 0) hits.on_hit(q + i, panel, sums.floats(i));
      }
    }
  }
}

// Nothing is compared: tiles are stored where the values belong. Vectors of few digits have no low parts, and need no product
// with them.
KITH_FOR_AMX void all_values_amx(const PanelQueries& queries, const PanelBase& base, int64_t panels, float* values,
                                 int64_t stride) {
  const int64_t units = units_per_part(PanelFormat::bf16, base.cols);
  const int64_t step = columns_per_step(PanelFormat::bf16, base.cols) / 2;
  const int64_t part = kSide * 4 * units;
  const TileSetup setup(step);
  for (int64_t q = 0; q < queries.count; q += kSide) {
    const std::byte* const high_queries = static_cast<const std::byte*>(queries.panels) + q * 8 * units;
    const std::byte* const low_queries = high_queries + part;
    const bool high_alone = all_zero(low_queries, part);
    for (int64_t panel = 0; panel < panels; ++panel) {
      const std::byte* const high_rows = static_cast<const std::byte*>(base.panels) + panel * 2 * part;
      start_sums(base.terms + panel * kSide);
      add_products<TileKind::bf16>({high_queries, high_rows, units, step, 0, units});
      if (!high_alone) add_products<TileKind::bf16>({low_queries, high_rows, units, step, 0, units});
      add_products<TileKind::bf16>({high_queries, high_rows + part, units, step, 0, units});
      float* const to = values + q * stride + panel * kSide;
      _tile_stored(0, to, 4 * stride);
      _tile_stored(1, to + kLanes, 4 * stride);
      _tile_stored(2, to + kLanes * stride, 4 * stride);
      _tile_stored(3, to + kLanes * stride + kLanes, 4 * stride);
    }
  }
}

KITH_FOR_AMX void scan_rounded_amx(const RoundedQueries& queries, const RoundedBase& base, int64_t first, int64_t count,
                                   PanelHits& hits) {
  const int64_t units = units_per_part(PanelFormat::i8, base.cols);
  const int64_t step = columns_per_step(PanelFormat::i8, base.cols) / 4;
  const TileSetup setup(step);
  BlockSums sums[2];
  BlockNumber before;
  int turn = 0;
  for (int64_t panel = first; panel < first + count; ++panel) {
    const auto* const rows = reinterpret_cast<const std::byte*>(base.panels) + panel * kSide * 4 * units;
    for (int64_t q = 0; q < queries.count; q += kSide) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
      add_products<TileKind::i8>(
          {reinterpret_cast<const std::byte*>(queries.panels) + q * 4 * units, rows, units, step, 0, units});
      store_sums(sums[turn]);
      turn ^= 1;
      if (before.panel >= 0) compare_rounded(queries, before.query, sums[turn], base, before.panel, hits);
      before = {panel, q};
    }
  }
  if (before.panel >= 0) compare_rounded(queries, before.query, sums[turn ^ 1], base, before.panel, hits);
}

void scan_bytes_amx(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                    BytePanelHits& hits) {
  base.format == PanelFormat::i8 ? scan_bytes<TileKind::i8>(queries, base, first, count, hits)
                                 : scan_bytes<TileKind::u8>(queries, base, first, count, hits);
}

}  // namespace kith

#endif
