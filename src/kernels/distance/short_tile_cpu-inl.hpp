// A tile of canonical sums of short vectors, from 16 columns on, for distance_block_cpu.cpp. Included once for each
// instruction set.
//
// A lane has a few columns, so that joining lanes takes as long as adding them up. A part of the tile is so small
// that all sums which the tree waits with stay in registers; the tree is unrolled.
#if defined(KITH_KERNELS_DISTANCE_SHORT_TILE_CPU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KITH_KERNELS_DISTANCE_SHORT_TILE_CPU_INL
#undef KITH_KERNELS_DISTANCE_SHORT_TILE_CPU_INL
#else
#define KITH_KERNELS_DISTANCE_SHORT_TILE_CPU_INL
#endif

#include "kernels/distance/canonical_step_cpu-inl.hpp"
#include "kernels/distance/distance_tile_cpu-inl.hpp"
#include "kernels/distance/lane_order.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Of a tile some queries and vectors of rows whose sums, and those that the tree waits with, fit the registers.
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

// One column of a part: step(sum, query's value, rows' values).
template <typename Step>
HWY_INLINE void for_column(const double* queries, const double* rows, Part& part, const Step& step) {
  for_part([&](int q, int v) HWY_ATTR {
    part[q][v] = step(part[q][v], hn::Set(F64(), queries[q]), hn::Load(F64(), rows + v * kDoubles));
  });
}

// What lanes kLane, kLane + kApart, ... come to: a part of the canonical tree. Every lane has a column.
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

// The sums of a tile of short vectors: the same as sum_tile's, which for so few columns waits for its own sums.
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
