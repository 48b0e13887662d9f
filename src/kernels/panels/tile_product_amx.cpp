// Matrix products by AMX's tiles: 16 rows of 64 bytes in a register, 16 x 16 results in another. A block is 32 queries
// by 32 rows, four tiles of sums, so that each tile of queries and of rows that is loaded is used twice. The sums go to
// a small buffer, where vectors compare them with the limits.
//
// A product takes as long as comparing the one before it, which is done meanwhile: sums are compared only when those of
// the next block are on their way, and would otherwise be waited for. Of bytes of up to 128 columns a panel of rows
// stays in registers, and comparisons come between products: half the time (bench/results/cpu/graph_sift1m_x86_64.jsonl).
//
// Bytes are multiplied exactly. Floats rounded to bytes (rounded_panels.hpp) are too, and scaled afterwards. Other
// floats come as two bf16 parts each (panel_format.hpp): the product of the high parts alone rules most blocks out;
// where it does not, the products with the low parts are added to the same sums, and narrower bounds decide. So the
// worst data cost three products and common data little more than one.
//
// Cost: a block takes cols / 64 (bytes) or cols / 32 (bf16) steps of four loads and four products of 16 cycles.
#include "core/infinity.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/panel_product.hpp"
#include "kernels/panels/rounded_panels.hpp"

#if defined(KITH_X86)

#include "kernels/panels/tile_setup_amx.hpp"

#include <bit>
#include <cstring>

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

// The addresses of a block's tiles.
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

KITH_FOR_AMX inline void zero_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
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

// --- blocks of bytes -------------------------------------------------------------------------------------------------

// A block that was multiplied, to be compared while the next one is.
struct Block {
  BlockSums sums;
  BlockNumber number;
};

// Packed bytes of queries and rows.
struct PackedSets {
  const std::byte* queries;
  int64_t query_count;
  const std::byte* rows;
  int64_t units;
  int64_t units_per_step;
};

#define KITH_ADD_PRODUCTS(kind, sums, queries, rows) \
  if constexpr ((kind) == TileKind::u8) {            \
    _tile_dpbuud(sums, queries, rows);               \
  } else {                                           \
    _tile_dpbssd(sums, queries, rows);               \
  }                                                  \
  static_assert((kind) != TileKind::bf16)

// Vectors of one or two steps: a panel of rows stays in four registers while queries go by, 16 at a time.
template <int kSteps>
KITH_FOR_AMX inline void load_rows_to_stay(const std::byte* rows, int64_t units_per_step) {
  constexpr int64_t kRowStride = 4 * kSide;
  _tile_loadd(4, rows, kRowStride);
  _tile_loadd(5, rows + 64, kRowStride);
  if constexpr (kSteps == 1) return;
  _tile_loadd(6, rows + kRowStride * units_per_step, kRowStride);
  _tile_loadd(7, rows + kRowStride * units_per_step + 64, kRowStride);
}

// 16 queries by the rows that stay. Between products, which take 16 cycles each, comes a fourth of other work.
template <TileKind kKind, int kSteps, typename Work>
KITH_FOR_AMX inline __attribute__((always_inline)) void multiply_half(const std::byte* queries, const PackedSets& sets,
                                                                      int32_t* sums, const Work& work) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_loadd(2, queries, 4 * sets.units);
  if constexpr (kSteps == 2) _tile_loadd(3, queries + 4 * sets.units_per_step, 4 * sets.units);
  KITH_ADD_PRODUCTS(kKind, 0, 2, 4);
  work.template part<0>();
  KITH_ADD_PRODUCTS(kKind, 1, 2, 5);
  work.template part<1>();
  if constexpr (kSteps == 2) {
    KITH_ADD_PRODUCTS(kKind, 0, 3, 6);
  }
  work.template part<2>();
  if constexpr (kSteps == 2) {
    KITH_ADD_PRODUCTS(kKind, 1, 3, 7);
  }
  work.template part<3>();
  _tile_stored(0, sums, 4 * kSide);
  _tile_stored(1, sums + kLanes, 4 * kSide);
}

#undef KITH_ADD_PRODUCTS

// Compares the sums of 16 queries from kFirst on, in four parts; `any` becomes what passes.
template <typename Comparison, int kFirst>
struct ComparedHalf {
  const Comparison& all;
  __mmask16& any;
  template <int kPart>
  KITH_FOR_AMX inline __attribute__((always_inline)) void part() const {
#pragma GCC unroll 4
    for (int q = kFirst + 4 * kPart; q < kFirst + 4 * kPart + 4; ++q) any = _kor_mask16(any, all.passing(q));
    __asm__ volatile("" : "+Yk"(any));  // here, and not behind the products
  }
};

template <typename Comparison>
KITH_FOR_AMX inline __attribute__((always_inline)) bool any_passes(const Comparison& compared) {
  __mmask16 any = 0;
#pragma GCC unroll 8
  for (int q = 0; q < kSide; ++q) any = _kor_mask16(any, compared.passing(q));
  return any != 0;
}

// The queries of a block that pass, a bit each. Without a branch for each: which of them do is as good as random.
template <typename Comparison>
KITH_FOR_AMX inline uint32_t passing_queries(const Comparison& compared, int64_t count) {
  uint32_t some = 0;
#pragma GCC unroll 8
  for (int q = 0; q < kSide; ++q) some = some >> 1 | static_cast<uint32_t>(compared.passing(q) != 0) << (kSide - 1);
  return count < kSide ? some & ((1u << count) - 1) : some;
}

// All blocks of some panels: scan.compare() makes what says which queries of a block pass, scan.report() hands them
// out. kSteps: the steps of a vector, 0 for more than two.
template <TileKind kKind, int kSteps, typename Scan>
KITH_FOR_AMX void scan_blocks(const PackedSets& sets, int64_t first, int64_t count, const Scan& scan) {
  const TileSetup setup(sets.units_per_step, kSteps > 0 ? 2 : 4, kSteps > 0 ? 4 : 6);
  Block blocks[2];
  std::memset(&blocks[1].sums, 0, sizeof(BlockSums));  // before the first, of which nothing passes
  int turn = 0;
  for (int64_t panel = first; panel < first + count; ++panel) {
    const std::byte* const rows = sets.rows + panel * kSide * 4 * sets.units;
    if constexpr (kSteps > 0) load_rows_to_stay<kSteps>(rows, sets.units_per_step);
    for (int64_t q = 0; q < sets.query_count; q += kSide) {
      const std::byte* const queries = sets.queries + q * 4 * sets.units;
      Block& block = blocks[turn];
      const Block& before = blocks[turn ^ 1];
      const auto compared = scan.compare(before);
      bool any = false;
      if constexpr (kSteps > 0) {
        __mmask16 passing = 0;
        const ComparedHalf<typename Scan::Comparison, 0> first_half{compared, passing};
        const ComparedHalf<typename Scan::Comparison, kLanes> second_half{compared, passing};
        multiply_half<kKind, kSteps>(queries, sets, block.sums.values[0], first_half);
        multiply_half<kKind, kSteps>(queries + kLanes * 4 * sets.units, sets, block.sums.values[kLanes], second_half);
        any = passing != 0;
      } else {
        zero_sums();
        add_products<kKind>({queries, rows, sets.units, sets.units_per_step, 0, sets.units});
        store_sums(block.sums);
        any = any_passes(compared);
      }
      if (any) scan.report(before, compared);
      block.number = {panel, q};
      turn ^= 1;
    }
  }
  const Block& last = blocks[turn ^ 1];
  const auto compared = scan.compare(last);
  if (any_passes(compared)) scan.report(last, compared);
}

template <TileKind kKind, typename Scan>
void scan_all_blocks(const PackedSets& sets, int64_t first, int64_t count, const Scan& scan) {
  switch (sets.units / sets.units_per_step) {
    case 1: return scan_blocks<kKind, 1>(sets, first, count, scan);
    case 2: return scan_blocks<kKind, 2>(sets, first, count, scan);
    default: return scan_blocks<kKind, 0>(sets, first, count, scan);
  }
}

// --- bytes -----------------------------------------------------------------------------------------------------------

KITH_FOR_AMX inline __m512i negative_halves(__m512i values, int scale) {
  return _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_sra_epi32(values, _mm_cvtsi32_si128(scale - 1)));
}

// value = term - scale * product. With start = -floor(term / scale), value is -scale * (product + start), or one more
// where a term is odd: a value within the limit has product + start of at least -floor(limit / scale).
class ByteComparison {
 public:
  KITH_FOR_AMX ByteComparison(const BytePanelQueries& queries, const BytePanelBase& base, const Block& block)
      : sums_(block.sums), starts_{_mm512_setzero_si512(), _mm512_setzero_si512()} {
    const auto [panel, query] = block.number;
    for (int i = 0; i < 2; ++i) {
      __m512i least = _mm512_set1_epi32(INT32_MAX);
      if (panel >= 0) {
        starts_[i] = negative_halves(_mm512_load_si512(base.terms + panel * kSide + i * kLanes), base.scale);
        const int64_t at = query + i * kLanes;
        __m512i limits = _mm512_loadu_si512(queries.limits + at);
        if (queries.row_limits != nullptr) {
          const __m512i offsets = _mm512_loadu_si512(queries.offsets + at);
          limits = _mm512_max_epi32(limits, _mm512_sub_epi32(_mm512_set1_epi32(queries.row_limits[panel]), offsets));
        }
        least = negative_halves(limits, base.scale);
      }
      _mm512_store_si512(least_ + i * kLanes, least);
    }
    __asm__ volatile("" ::: "memory");  // so that each is broadcast by a load, and not from the register
  }

  // Whether a value of the query may pass, in any lane.
  KITH_FOR_AMX inline __attribute__((always_inline)) __mmask16 passing(int q) const {
    return _mm512_cmpge_epi32_mask(_mm512_max_epi32(sum(q, 0), sum(q, 1)), _mm512_set1_epi32(least_[q]));
  }
  KITH_FOR_AMX inline __attribute__((always_inline)) __m512i sum(int q, int half) const {
    return _mm512_add_epi32(_mm512_load_si512(sums_.values[q] + half * kLanes), starts_[half]);
  }

 private:
  const BlockSums& sums_;
  __m512i starts_[2];
  alignas(64) int32_t least_[kSide];
};

struct ByteScan {
  using Comparison = ByteComparison;
  const BytePanelQueries& queries;
  const BytePanelBase& base;
  BytePanelHits& hits;

  KITH_FOR_AMX inline __attribute__((always_inline)) Comparison compare(const Block& block) const {
    return Comparison(queries, base, block);
  }

  KITH_FOR_AMX __attribute__((noinline)) void report(const Block& block, const Comparison& compared) const {
    const __m128i shift = _mm_cvtsi32_si128(base.scale - 1);
    const auto [panel, first_query] = block.number;
    // What halving took from the terms: 0 or 1.
    __m512i odd[2];
    for (int v = 0; v < 2; ++v) {
      const __m512i term = _mm512_load_si512(base.terms + panel * kSide + v * kLanes);
      odd[v] = _mm512_sub_epi32(term, _mm512_sll_epi32(_mm512_sra_epi32(term, shift), shift));
    }
    for (uint32_t some = passing_queries(compared, queries.count - first_query); some != 0; some &= some - 1) {
      const int q = std::countr_zero(some);
      const __m512i value0 = _mm512_sub_epi32(odd[0], _mm512_sll_epi32(compared.sum(q, 0), shift));
      const __m512i value1 = _mm512_sub_epi32(odd[1], _mm512_sll_epi32(compared.sum(q, 1), shift));
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
};

// --- floats rounded to bytes -----------------------------------------------------------------------------------------

// Sums become values, term + factor scale sum.
class RoundedComparison {
 public:
  KITH_FOR_AMX RoundedComparison(const RoundedQueries& queries, const RoundedBase& base, const Block& block)
      : sums_(block.sums),
        factors_(queries.factors + block.number.query),
        terms_{_mm512_setzero_ps(), _mm512_setzero_ps()},
        scales_{_mm512_setzero_ps(), _mm512_setzero_ps()} {
    const auto [panel, query] = block.number;
    for (int i = 0; i < 2; ++i) {
      __m512 limits = _mm512_set1_ps(-kInfinity);
      if (panel >= 0) {
        terms_[i] = _mm512_loadu_ps(base.terms + panel * kSide + i * kLanes);
        scales_[i] = _mm512_loadu_ps(base.scales + panel * kSide + i * kLanes);
        limits = limits_of(queries, base, panel, query + i * kLanes);
      }
      _mm512_store_ps(limits_ + i * kLanes, limits);
    }
    __asm__ volatile("" ::: "memory");  // as above
  }

  // A NaN may be lost on the way; where there can be one the limit is infinite.
  KITH_FOR_AMX inline __attribute__((always_inline)) __mmask16 passing(int q) const {
    const __m512 least = _mm512_min_ps(values(q, 0), values(q, 1));
    return _mm512_cmp_ps_mask(least, _mm512_set1_ps(limits_[q]), _CMP_NGT_UQ);
  }
  KITH_FOR_AMX inline __attribute__((always_inline)) __m512 values(int q, int half) const {
    const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(sums_.values[q] + half * kLanes));
    return _mm512_fmadd_ps(_mm512_mul_ps(scales_[half], _mm512_set1_ps(factors_[q])), sum, terms_[half]);
  }

 private:
  KITH_FOR_AMX static inline __m512 limits_of(const RoundedQueries& queries, const RoundedBase& base, int64_t panel,
                                              int64_t at) {
    const __m512 norm = _mm512_set1_ps(base.norms[panel]);
    const __m512 residual = _mm512_set1_ps(base.residuals[panel]);
    const __m512 slope = _mm512_add_ps(_mm512_loadu_ps(queries.linear + at),
                                       _mm512_mul_ps(norm, _mm512_loadu_ps(queries.quadratic + at)));
    const __m512 bound =
        _mm512_add_ps(_mm512_add_ps(_mm512_loadu_ps(queries.constant + at), _mm512_mul_ps(norm, slope)),
                      _mm512_mul_ps(residual, _mm512_loadu_ps(queries.tilt + at)));
    __m512 limits = _mm512_loadu_ps(queries.limits + at);
    if (queries.row_limits != nullptr) {
      const __m512 offsets = _mm512_loadu_ps(queries.offsets + at);
      limits = _mm512_max_ps(limits, _mm512_sub_ps(_mm512_set1_ps(queries.row_limits[panel]), offsets));
    }
    return _mm512_add_ps(limits, bound);
  }

  const BlockSums& sums_;
  const float* const factors_;
  __m512 terms_[2];
  __m512 scales_[2];
  alignas(64) float limits_[kSide];
};

struct RoundedScan {
  using Comparison = RoundedComparison;
  const RoundedQueries& queries;
  const RoundedBase& base;
  PanelHits& hits;

  KITH_FOR_AMX inline __attribute__((always_inline)) Comparison compare(const Block& block) const {
    return Comparison(queries, base, block);
  }

  KITH_FOR_AMX __attribute__((noinline)) void report(const Block& block, const Comparison& compared) const {
    const auto [panel, first_query] = block.number;
    if (panel < 0) return;  // before the first block a factor that is infinite makes a NaN, which passes
    for (uint32_t some = passing_queries(compared, queries.count - first_query); some != 0; some &= some - 1) {
      const int q = std::countr_zero(some);
      alignas(64) float values[kSide];
      _mm512_store_ps(values, compared.values(q, 0));
      _mm512_store_ps(values + kLanes, compared.values(q, 1));
      hits.on_hit(first_query + q, panel, values);
    }
  }
};

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

// Adds products to sums in memory, segment by segment (error_bound.hpp).
KITH_FOR_AMX void add_segments(BlockPlace place, BlockSums& totals) {
  BlockSums segment;
  const int64_t units = kSegmentColumns / 2 / place.units_per_step * place.units_per_step;
  for (int64_t first = 0; first < place.units; first += units) {
    place.first = first;
    place.end = first + units < place.units ? first + units : place.units;
    zero_sums();
    add_products<TileKind::bf16>(place);
    store_sums(segment);
    for (int q = 0; q < kSide; ++q) {
      for (int i = 0; i < kSide; i += kLanes) {
        const __m512 total = _mm512_add_ps(_mm512_load_ps(totals.floats(q) + i), _mm512_load_ps(segment.floats(q) + i));
        _mm512_store_si512(totals.values[q] + i, _mm512_castps_si512(total));
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

// Nothing is compared: tiles are stored where the values belong. Vectors of few digits have no low parts, and need no
// product with them.
KITH_FOR_AMX void all_values_amx(const PanelQueries& queries, const PanelBase& base, int64_t panels, float* values,
                                 int64_t stride) {
  const int64_t units = units_per_part(PanelFormat::bf16, base.cols);
  const int64_t step = columns_per_step(PanelFormat::bf16, base.cols) / 2;
  const int64_t part = kSide * 4 * units;
  const TileSetup setup(step);
  const auto queries_of = [&](int64_t q) { return static_cast<const std::byte*>(queries.panels) + q * 8 * units; };
  bool high_alone = true;
  for (int64_t q = 0; q < queries.count; q += kSide) high_alone = high_alone && all_zero(queries_of(q) + part, part);
  for (int64_t panel = 0; panel < panels; ++panel) {
    const std::byte* const high_rows = static_cast<const std::byte*>(base.panels) + panel * 2 * part;
    for (int64_t q = 0; q < queries.count; q += kSide) {
      const std::byte* const high_queries = queries_of(q);
      const std::byte* const low_queries = high_queries + part;
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

void scan_rounded_amx(const RoundedQueries& queries, const RoundedBase& base, int64_t first, int64_t count,
                      PanelHits& hits) {
  const PackedSets sets{static_cast<const std::byte*>(queries.panels), queries.count,
                        static_cast<const std::byte*>(base.panels), units_per_part(PanelFormat::i8, base.cols),
                        columns_per_step(PanelFormat::i8, base.cols) / 4};
  scan_all_blocks<TileKind::i8>(sets, first, count, RoundedScan{queries, base, hits});
}

void scan_bytes_amx(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                    BytePanelHits& hits) {
  const PackedSets sets{static_cast<const std::byte*>(queries.panels), queries.count,
                        static_cast<const std::byte*>(base.panels), units_per_part(base.format, base.cols),
                        columns_per_step(base.format, base.cols) / 4};
  const ByteScan scan{queries, base, hits};
  base.format == PanelFormat::i8 ? scan_all_blocks<TileKind::i8>(sets, first, count, scan)
                                 : scan_all_blocks<TileKind::u8>(sets, first, count, scan);
}

}  // namespace kith

#endif
