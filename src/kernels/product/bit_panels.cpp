#include "kernels/product/bit_panels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product/bit_panels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR  // where no vectors can be used
constexpr int kQueries = 4;
constexpr int64_t kRows = 4;

HWY_INLINE void count_units(const uint32_t* queries, const uint32_t* rows, int64_t units,
                            int32_t (&values)[kQueries][kRows]) {
  for (int64_t u = 0; u < units; ++u) {
    for (int q = 0; q < kQueries; ++q) {
      for (int64_t i = 0; i < kRows; ++i) {
        values[q][i] += __builtin_popcount(queries[u * kQueries + q] ^ rows[u * kRows + i]);
      }
    }
  }
}

HWY_INLINE bool all_above(const int32_t (&values)[kRows], int32_t limit) {
  return std::all_of(values, values + kRows, [=](int32_t value) { return value > limit; });
}
#else
using U8 = hn::ScalableTag<uint8_t>;
using U32 = hn::Repartition<uint32_t, U8>;
using I32 = hn::Repartition<int32_t, U8>;
constexpr int64_t kUnits = hn::MaxLanes(U32());

// As many counters as registers allow beside the rows and the query.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kQueries = 8;
constexpr int kVectors = 3;
#else
constexpr int kQueries = 4;
constexpr int kVectors = 2;
#endif
constexpr int64_t kRows = kVectors * kUnits;

// The four bytes of each unit, added up.
HWY_INLINE hn::Vec<U32> sum_of_unit(hn::Vec<U8> counts) {
  const U32 d;
  const auto units = hn::BitCast(d, counts);
  const auto odd_and_even = hn::Set(d, 0x00FF00FFu);
  const auto pairs = hn::Add(hn::And(units, odd_and_even), hn::And(hn::ShiftRight<8>(units), odd_and_even));
  return hn::Add(hn::And(pairs, hn::Set(d, 0xFFFFu)), hn::ShiftRight<16>(pairs));
}

// Adds the counts of up to 31 units of a tile to its values.
HWY_INLINE void count_units(const uint32_t* queries, const uint32_t* rows, int64_t units,
                            int32_t (&values)[kQueries][kRows]) {
  const U32 d;
  hn::Vec<U8> counts[kQueries][kVectors];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) counts[q][v] = hn::Zero(U8());
  }
  for (int64_t u = 0; u < units; ++u) {
    hn::Vec<U8> r[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) r[v] = hn::BitCast(U8(), hn::Load(d, rows + u * kRows + v * kUnits));
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
      const auto query = hn::BitCast(U8(), hn::Set(d, queries[u * kQueries + q]));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        counts[q][v] = hn::Add(counts[q][v], hn::PopulationCount(hn::Xor(query, r[v])));
      }
    }
  }
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      int32_t* const to = values[q] + v * kUnits;
      hn::Store(hn::Add(hn::Load(I32(), to), hn::BitCast(I32(), sum_of_unit(counts[q][v]))), I32(), to);
    }
  }
}

HWY_INLINE bool all_above(const int32_t (&values)[kRows], int32_t limit) {
  bool above = true;
  for (int v = 0; v < kVectors; ++v) {
    above = above && hn::AllTrue(I32(), hn::Gt(hn::Load(I32(), values + v * kUnits), hn::Set(I32(), limit)));
  }
  return above;
}
#endif

constexpr int64_t kStepsInBytes = 31;  // of 8 bits each

HWY_NOINLINE void scan_tile(const BytePanelQueries& queries, int64_t first_query, const uint32_t* query_panel,
                            const BytePanelBase& base, int64_t panel, int64_t units, BytePanelHits& hits) {
  HWY_ALIGN int32_t values[kQueries][kRows];
  for (auto& of_query : values) std::copy_n(base.terms + panel * kRows, kRows, of_query);
  const uint32_t* const rows = static_cast<const uint32_t*>(base.panels) + panel * kRows * units;
  for (int64_t u = 0; u < units; u += kStepsInBytes) {
    count_units(query_panel + u * kQueries, rows + u * kRows, std::min(kStepsInBytes, units - u), values);
  }
  for (int q = 0; q < kQueries && first_query + q < queries.count; ++q) {
    if (all_above(values[q], queries.limits[first_query + q])) continue;
    uint64_t passed = 0;
    for (int64_t i = 0; i < kRows; ++i) {
      passed |= static_cast<uint64_t>(values[q][i] <= queries.limits[first_query + q]) << i;
    }
    hits.on_hit(first_query + q, panel, passed, values[q]);
  }
}

void ScanBitPanels(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                   BytePanelHits& hits) {
  const int64_t units = units_per_part(PanelFormat::bits, base.cols);
  for (int64_t panel = first; panel < first + count; ++panel) {
    for (int64_t q = 0; q < queries.count; q += kQueries) {
      scan_tile(queries, q, static_cast<const uint32_t*>(queries.panels) + q * units, base, panel, units, hits);
    }
  }
}

PanelShape BitPanelShape() { return {kRows, kQueries, false, false}; }

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(BitPanelShape);
HWY_EXPORT(ScanBitPanels);

PanelShape bit_panel_shape() { return HWY_DYNAMIC_DISPATCH(BitPanelShape)(); }

void scan_bit_panels(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                     BytePanelHits& hits) {
  HWY_DYNAMIC_DISPATCH(ScanBitPanels)(queries, base, first, count, hits);
}

}  // namespace kith
#endif
