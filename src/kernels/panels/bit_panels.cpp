#include "kernels/panels/byte_product.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/panels/bit_panels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kColumnsInBytes = 31;  // of 8 bits each

using U8 = hn::ScalableTag<uint8_t>;
constexpr int64_t kLanes = hn::MaxLanes(U8());

// As many counters as registers allow beside the rows and the query, and at most 64 rows.
#if HWY_TARGET <= HWY_AVX3
constexpr int kQueries = 8;
constexpr int kVectors = 1;
#elif HWY_TARGET == HWY_NEON
constexpr int kQueries = 4;
constexpr int kVectors = 4;
#else
constexpr int kQueries = 4;
constexpr int kVectors = 2;
#endif
constexpr int64_t kRows = kVectors * kLanes;

// The counts of some queries and a panel's rows, up to 31 columns of them.
template <int kCount>
struct TileCounts {
  HWY_INLINE TileCounts() {}  // one that the compiler made would not be for this instruction set
  HWY_INLINE void count(const uint8_t* queries, const uint8_t* rows, int64_t cols) {
#pragma GCC unroll 8
    for (int q = 0; q < kCount; ++q) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) counts[q][v] = hn::Zero(U8());
    }
    for (int64_t c = 0; c < cols; ++c) {
      hn::Vec<U8> r[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) r[v] = hn::Load(U8(), rows + c * kRows + v * kLanes);
#pragma GCC unroll 8
      for (int q = 0; q < kCount; ++q) {
        const auto query = hn::Set(U8(), queries[c * kQueries + q]);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          counts[q][v] = hn::Add(counts[q][v], hn::PopulationCount(hn::Xor(query, r[v])));
        }
      }
    }
  }
  // Bit i is set where row i is not above the limit.
  HWY_INLINE uint64_t passed(int q, uint8_t limit) const {
    auto least = counts[q][0];
#pragma GCC unroll 4
    for (int v = 1; v < kVectors; ++v) least = hn::Min(least, counts[q][v]);
    const auto most = hn::Set(U8(), limit);
    if (hn::AllTrue(U8(), hn::Gt(least, most))) return 0;
    uint8_t bytes[16] = {};  // each store may touch eight of them
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreMaskBits(U8(), hn::Not(hn::Gt(counts[q][v], most)), bytes + v * kLanes / 8);
    }
    uint64_t bits;
    memcpy(&bits, bytes, sizeof bits);
    return bits;
  }
  HWY_INLINE void store(int q, uint8_t* out) const {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hn::StoreU(counts[q][v], U8(), out + v * kLanes);
  }

  hn::Vec<U8> counts[kCount][kVectors];
};

// Values of rows that are no longer than a byte can count.
template <int kCount>
HWY_NOINLINE void scan_short(const BytePanelQueries& queries, int64_t first, const uint8_t* query_bytes,
                             const uint8_t* rows, int64_t cols, int64_t panel, BytePanelHits& hits) {
  TileCounts<kCount> tile;
  tile.count(query_bytes, rows, cols);
  for (int q = 0; q < kCount && first + q < queries.count; ++q) {
    const int32_t limit = queries.limit(first + q, panel);
    if (limit < 0) continue;
    const uint64_t passed = tile.passed(q, static_cast<uint8_t>(std::min(limit, 255)));
    if (passed == 0) continue;
    uint8_t counts[kRows];
    int32_t values[kRows];
    tile.store(q, counts);
    std::copy_n(counts, kRows, values);
    hits.on_hit(first + q, panel, passed, values);
  }
}

template <int kCount>
HWY_NOINLINE void scan_long(const BytePanelQueries& queries, int64_t first, const uint8_t* query_bytes,
                            const uint8_t* rows, int64_t cols, int64_t panel, BytePanelHits& hits) {
  int32_t values[kCount][kRows] = {};
  for (int64_t c = 0; c < cols; c += kColumnsInBytes) {
    TileCounts<kCount> tile;
    tile.count(query_bytes + c * kQueries, rows + c * kRows, std::min(kColumnsInBytes, cols - c));
    for (int q = 0; q < kCount; ++q) {
      uint8_t counts[kRows];
      tile.store(q, counts);
      for (int64_t i = 0; i < kRows; ++i) values[q][i] += counts[i];
    }
  }
  for (int q = 0; q < kCount && first + q < queries.count; ++q) {
    const int32_t limit = queries.limit(first + q, panel);
    if (*std::min_element(values[q], values[q] + kRows) > limit) continue;
    uint64_t passed = 0;
    for (int64_t i = 0; i < kRows; ++i) passed |= static_cast<uint64_t>(values[q][i] <= limit) << i;
    hits.on_hit(first + q, panel, passed, values[q]);
  }
}

template <int kCount>
void scan_tile(const BytePanelQueries& queries, int64_t first, const BytePanelBase& base, int64_t panel,
               BytePanelHits& hits) {
  // A query's bytes lie kQueries apart.
  const auto* const bytes =
      static_cast<const uint8_t*>(queries.panels) + first / kQueries * kQueries * base.cols + first % kQueries;
  const auto* const rows = static_cast<const uint8_t*>(base.panels) + panel * kRows * base.cols;
  if (base.cols <= kColumnsInBytes) {
    scan_short<kCount>(queries, first, bytes, rows, base.cols, panel, hits);
  } else {
    scan_long<kCount>(queries, first, bytes, rows, base.cols, panel, hits);
  }
}

void ScanBitPanels(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                   BytePanelHits& hits) {
  const int64_t single = queries.count % kQueries <= 2 ? queries.count % kQueries : 0;
  for (int64_t panel = first; panel < first + count; ++panel) {
    int64_t q = 0;
    for (; q < queries.count - single; q += kQueries) scan_tile<kQueries>(queries, q, base, panel, hits);
    for (; q < queries.count; ++q) scan_tile<1>(queries, q, base, panel, hits);
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
