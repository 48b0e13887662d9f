// A tile of canonical sums on the CPU: some queries and some vectors of rows in registers, for distance_block_cpu.cpp.
// Included once for each instruction set.
//
// sum_tile() goes lane after lane and joins them as the tree says; prove_tile() computes an interval around the sum
// instead; short_tile() is for short vectors.
#if defined(KITH_KERNELS_DISTANCE_DISTANCE_TILE_CPU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KITH_KERNELS_DISTANCE_DISTANCE_TILE_CPU_INL
#undef KITH_KERNELS_DISTANCE_DISTANCE_TILE_CPU_INL
#else
#define KITH_KERNELS_DISTANCE_DISTANCE_TILE_CPU_INL
#endif

#include "core/divide.hpp"
#include "kernels/distance/canonical_step_cpu-inl.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/lane_order.hpp"
#include "kernels/distance/to_floats_cpu-inl.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The tile fills the registers: sums, a vector for each group of rows, and a query's value.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kTileQueries = 6;
constexpr int kTileVectors = 4;
#else
constexpr int kTileQueries = 4;
constexpr int kTileVectors = 3;
#endif
constexpr int64_t kTileRows = kTileVectors * kDoubles;
constexpr int64_t kQueryWidth = round_up(kTileQueries, kDoubles);  // queries of a panel, in whole registers

using Tile = Doubles[kTileQueries][kTileVectors];

template <typename Use>
HWY_INLINE void for_tile(const Use& use) {
#pragma GCC unroll 8
  for (int q = 0; q < kTileQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) use(q, v);
  }
}

HWY_INLINE void store_tile(const Tile& tile, double* to) {
  for_tile([&](int q, int v) HWY_ATTR { hn::Store(tile[q][v], F64(), to + (q * kTileVectors + v) * kDoubles); });
}

HWY_INLINE void load_tile(const double* from, Tile& tile) {
  for_tile([&](int q, int v) HWY_ATTR { tile[q][v] = hn::Load(F64(), from + (q * kTileVectors + v) * kDoubles); });
}

// The position of a slab among the slabs of a row.
struct Slab {
  bool first;
  bool last;
};

// A step over `count` packed columns.
template <KeyKind kKind>
HWY_INLINE void add_columns(const double* queries, const double* rows, int64_t count, Tile& tile) {
  for (int64_t c = 0; c < count; ++c) {
    Doubles x[kTileVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) x[v] = hn::Load(F64(), rows + v * kDoubles);
#if HWY_ARCH_ARM_A64
    if constexpr (kKind == KeyKind::inner_product) {  // by a lane: a value to all lanes takes an operation
      static_assert(kTileQueries % 2 == 0 && kDoubles == 2);
#pragma GCC unroll 4
      for (int q = 0; q < kTileQueries; q += 2) {
        const Doubles two = hn::Load(F64(), queries + q);
#pragma GCC unroll 4
        for (int v = 0; v < kTileVectors; ++v) tile[q][v] = fused(hn::Broadcast<0>(two), x[v], tile[q][v]);
#pragma GCC unroll 4
        for (int v = 0; v < kTileVectors; ++v) tile[q + 1][v] = fused(hn::Broadcast<1>(two), x[v], tile[q + 1][v]);
        __asm__ volatile("" ::: "memory");
      }
      queries += kQueryWidth;
      rows += kTileRows;
      continue;
    }
#endif
#pragma GCC unroll 8
    for (int q = 0; q < kTileQueries; ++q) {
      const Doubles value = hn::Set(F64(), queries[q]);
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) tile[q][v] = step_lanes<kKind>(tile[q][v], value, x[v]);
#if HWY_ARCH_ARM_A64
      __asm__ volatile("" ::: "memory");  // or else all values are loaded first, and sums have no register left
#endif
    }
    queries += kQueryWidth;
    rows += kTileRows;
  }
}

// A panel of queries, a panel of rows, and the destination of their keys.
struct TilePlace {
  const double* queries;
  const double* rows;
  const CanonicalQuery* canonical;  // the queries
  const double* row_inverses;
  float* keys;
  int64_t stride;
  int query_count;
  int64_t row_count;
};

using Floats = hn::Vec<hn::Rebind<float, F64>>;

HWY_INLINE void put_keys(const TilePlace& place, int q, int v, Floats keys) {
  const hn::Rebind<float, F64> d;
  if (q >= place.query_count) return;
  float* const to = place.keys + q * place.stride + v * kDoubles;
  const int64_t count = std::min(kDoubles, place.row_count - v * kDoubles);
  if (HWY_LIKELY(count == kDoubles)) return hn::StoreU(keys, d, to);
  HWY_ALIGN float some[kDoubles];
  hn::Store(keys, d, some);
  for (int64_t i = 0; i < count; ++i) to[i] = some[i];
}

// canonical_key.
template <KeyKind kKind>
HWY_INLINE Floats key_of(Doubles sum, Doubles inverse_x, double inverse_q) {
  if constexpr (kKind == KeyKind::inner_product) return to_floats(hn::Neg(sum));
  if constexpr (kKind == KeyKind::l2) return to_floats(hn::Sqrt(sum));
  if constexpr (kKind == KeyKind::cosine) {
    const Doubles one = hn::Set(F64(), 1.0);
    if (inverse_q == 0.0) return to_floats(one);
    const Doubles half = hn::Mul(hn::Set(F64(), 0.5), sum);
    return to_floats(hn::IfThenElse(hn::Eq(inverse_x, hn::Zero(F64())), one, half));
  }
  return to_floats(sum);
}

template <KeyKind kKind>
HWY_INLINE Floats key_at(const TilePlace& place, int q, int v, Doubles sum) {
  Doubles inverse_x = hn::Zero(F64());
  double inverse_q = 0;
  if constexpr (kKind == KeyKind::cosine) {
    inverse_x = hn::Load(F64(), place.row_inverses + v * kDoubles);
    inverse_q = place.canonical[std::min(q, place.query_count - 1)].inverse_norm;
  }
  return key_of<kKind>(sum, inverse_x, inverse_q);
}

// Sums lane after lane. `lanes` carries them between slabs; after the last slab they are joined.
template <KeyKind kKind>
HWY_NOINLINE void sum_tile(const TilePlace& place, const LaneOrder& order, const LaneWalk& walk, const Slab& slab,
                           double* lanes) {
  HWY_ALIGN double waiting[5][kTileQueries * kTileRows];
  int depth = 0;
  for (int i = 0; i < walk.count; ++i) {
    const auto [lane, joins] = walk.steps[i];
    const int64_t at = order.first[lane];
    Tile tile;
    if (slab.first) {
      for_tile([&](int q, int v) HWY_ATTR { tile[q][v] = hn::Zero(F64()); });
    } else {
      load_tile(lanes + lane * kTileQueries * kTileRows, tile);
    }
    add_columns<kKind>(place.queries + at * kQueryWidth, place.rows + at * kTileRows, order.first[lane + 1] - at, tile);
    if (!slab.last) {
      store_tile(tile, lanes + lane * kTileQueries * kTileRows);
      continue;
    }
    for (int j = 0; j < joins; ++j) {
      const double* const before = waiting[--depth];
      for_tile([&](int q, int v) HWY_ATTR {
        const Doubles other = hn::Load(F64(), before + (q * kTileVectors + v) * kDoubles);
        tile[q][v] = join_lanes<kKind>(F64(), other, tile[q][v]);
      });
    }
    if (i + 1 < walk.count) {
      store_tile(tile, waiting[depth++]);
    } else {
      for_tile([&](int q, int v) HWY_ATTR { put_keys(place, q, v, key_at<kKind>(place, q, v, tile[q][v])); });
    }
  }
}

// |q|^2 + |x|^2 - 2 q x within an interval: true where each interval rounds to one key, which is put. All that is added
// up, here and in the canonical sum, is at most (|q| + |x|)^2 <= 2 (|q|^2 + |x|^2), with a rounding for each column and
// a few more.
template <KeyKind kKind>
HWY_INLINE bool prove_sums(const TilePlace& place, const Tile& tile, int64_t cols, const double* query_norms,
                           const double* row_norms) {
  const Doubles share = hn::Set(F64(), 2.2 * static_cast<double>(cols + 32) * 0x1p-53);
  const Doubles least = hn::Set(F64(), 0x1p-960);  // covers underflow
  const Doubles two = hn::Set(F64(), 2.0);
  const hn::Rebind<float, F64> d;
  auto proven = hn::Eq(hn::Zero(d), hn::Zero(d));
  for_tile([&](int q, int v) HWY_ATTR {
    const Doubles norms = hn::Add(hn::Set(F64(), query_norms[q]), hn::Load(F64(), row_norms + v * kDoubles));
    const Doubles middle = hn::Sub(norms, hn::Mul(two, tile[q][v]));
    const Doubles error = hn::Add(hn::Mul(norms, share), least);
    const Floats low = key_at<kKind>(place, q, v, hn::Sub(middle, error));
    const Floats high = key_at<kKind>(place, q, v, hn::Add(middle, error));
    if (q < place.query_count) proven = hn::And(proven, hn::Eq(low, high));  // a NaN is none
    put_keys(place, q, v, high);
  });
  return hn::AllTrue(d, proven);
}

// Adds up the products of a slab of `width` columns; after the last one, returns what prove_sums() says. `sums` holds
// them between slabs.
template <KeyKind kKind>
HWY_NOINLINE bool prove_tile(const TilePlace& place, int64_t width, int64_t cols, const Slab& slab, double* sums,
                             const double* query_norms, const double* row_norms) {
  Tile tile;
  if (slab.first) {
    for_tile([&](int q, int v) HWY_ATTR { tile[q][v] = hn::Zero(F64()); });
  } else {
    load_tile(sums, tile);
  }
  add_columns<KeyKind::inner_product>(place.queries, place.rows, width, tile);
  if (slab.last) return prove_sums<kKind>(place, tile, cols, query_norms, row_norms);
  store_tile(tile, sums);
  return false;
}

// Short vectors, from 16 columns on: a lane has a few columns, so that joining lanes takes as long as adding them up. A
// part of the tile is so small that all sums which the tree waits with stay in registers; the tree is unrolled.

// A part of a tile: queries and vectors of rows whose sums, and those that the tree waits with, fit the registers.
constexpr int kPartQueries = 2;
constexpr int kPartVectors = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 2 : 1;
static_assert(kTileQueries % kPartQueries == 0 && kTileVectors % kPartVectors == 0);

using Part = Doubles[kPartQueries][kPartVectors];

// Where a part's columns begin.
struct PartPlace {
  const double* queries;
  const double* rows;
  const LaneOrder& order;
};

template <typename Use>
HWY_INLINE void for_part(const Use& use) {
#pragma GCC unroll 4
  for (int q = 0; q < kPartQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kPartVectors; ++v) use(q, v);
  }
}

// Accumulates one column of a part by step(sum, query's value, rows' values).
template <typename Step>
HWY_INLINE void for_column(const double* queries, const double* rows, Part& part, const Step& step) {
  for_part([&](int q, int v) HWY_ATTR {
    part[q][v] = step(part[q][v], hn::Set(F64(), queries[q]), hn::Load(F64(), rows + v * kDoubles));
  });
}

// The sum of lanes kLane, kLane + kApart, ...: a subtree of the canonical tree. Every lane has a column.
template <KeyKind kKind, int kLane, int kApart>
HWY_INLINE void part_of_tree(const PartPlace& place, Part& part) {
  if constexpr (kApart < kCanonicalLanes) {
    part_of_tree<kKind, kLane, 2 * kApart>(place, part);
    Part other;
    part_of_tree<kKind, kLane + kApart, 2 * kApart>(place, other);
    for_part([&](int q, int v) HWY_ATTR { part[q][v] = hn::Add(part[q][v], other[q][v]); });
  } else {
    const int64_t at = place.order.first[kLane];
    for_column(place.queries + at * kQueryWidth, place.rows + at * kTileRows, part,
               [](Doubles, Doubles q, Doubles x) HWY_ATTR { return first_in_lane<kKind>(q, x); });
    for (int64_t c = at + 1; c < place.order.first[kLane + 1]; ++c) {
      for_column(place.queries + c * kQueryWidth, place.rows + c * kTileRows, part,
                 [](Doubles sum, Doubles q, Doubles x) HWY_ATTR { return step_lanes<kKind>(sum, q, x); });
    }
  }
}

// The sums of a tile of short vectors. Same results as sum_tile, whose dependency chains would stall here.
template <KeyKind kKind>
HWY_NOINLINE void sum_short(const TilePlace& place, const LaneOrder& order, double* sums) {
  for (int q = 0; q < place.query_count; q += kPartQueries) {
    for (int v = 0; v < kTileVectors; v += kPartVectors) {
      Part part;
      part_of_tree<kKind, 0, 1>({place.queries + q, place.rows + v * kDoubles, order}, part);
      for_part([&](int i, int j) HWY_ATTR {
        hn::Store(part[i][j], F64(), sums + ((q + i) * kTileVectors + v + j) * kDoubles);
      });
    }
  }
}

template <KeyKind kKind>
HWY_NOINLINE void short_tile(const TilePlace& place, const LaneOrder& order) {
  constexpr KeyKind kSum = has_differences(kKind) || kKind == KeyKind::cosine ? KeyKind::squared_l2 : kKind;
  HWY_ALIGN double sums[kTileQueries * kTileRows];
  sum_short<kSum>(place, order, sums);
  const bool whole = place.row_count >= kTileRows;
  for (int q = 0; q < place.query_count; ++q) {
    float* const keys = place.keys + q * place.stride;
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
      const Doubles sum = hn::Load(F64(), sums + (q * kTileVectors + v) * kDoubles);
      const Floats key = key_at<kKind>(place, q, v, sum);
      if (HWY_LIKELY(whole)) {
        hn::StoreU(key, hn::Rebind<float, F64>(), keys + v * kDoubles);
      } else {
        put_keys(place, q, v, key);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#endif
