// Exact products of bytes on x86 processors without VNNI: bytes are widened to 16 bits, and one instruction adds the
// two products of a pair to each 32-bit lane.
//
// Rows have four bytes per word, as for the other families, and are widened when they are loaded: odd columns are
// masked or shifted out to get the even ones. A panel of queries is widened once for several panels of rows, so that a
// pair is broadcast by a load. The tile fills the registers, like that of f32.
//
// Cost: 16 products per two instructions of 32 bytes, where f32 does 8 in one, but on half as many ports: about 1.4
// times the rate of f32.
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/panels/byte_product_words.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I32 = hn::ScalableTag<int32_t>;
using I16 = hn::Repartition<int16_t, I32>;
using U16 = hn::Repartition<uint16_t, I32>;
constexpr int64_t kLanes = hn::MaxLanes(I32());

#if HWY_TARGET <= HWY_AVX3
constexpr int kQueries = 8;
constexpr int kVectors = 3;
#else
constexpr int kQueries = 6;
constexpr int kVectors = 2;
#endif
constexpr int64_t kRows = kVectors * kLanes;
constexpr int64_t kPanelsAtOnce = 16;  // of rows, for queries that are widened once

using Sums = hn::Vec<I32>;
using Words = hn::Vec<I16>;

// Columns 0 and 2 of every word, or 1 and 3, with 16 bits each.
template <bool kSigned, bool kOdd>
HWY_INLINE Words widened(hn::Vec<U16> bytes) {
  const I16 d;
  if constexpr (kSigned) {
    const Words words = hn::BitCast(d, bytes);
    return hn::ShiftRight<8>(kOdd ? words : hn::ShiftLeft<8>(words));
  } else {
    return hn::BitCast(d, kOdd ? hn::ShiftRight<8>(bytes) : hn::And(bytes, hn::Set(U16(), 0x00FF)));
  }
}

template <bool kSigned, bool kOdd>
HWY_INLINE void add_pairs(const int32_t* queries, const int32_t* rows, Sums (&sums)[kQueries][kVectors]) {
  const I32 d;
  Words r[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    r[v] = widened<kSigned, kOdd>(hn::BitCast(U16(), hn::Load(d, rows + v * kLanes)));
  }
#pragma GCC unroll 16
  for (int q = 0; q < kQueries; ++q) {
    const Words pair = hn::BitCast(I16(), hn::Set(d, queries[q]));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      Sums odd = hn::Zero(d);  // stays zero where one instruction adds both products of a pair
      sums[q][v] = hn::ReorderWidenMulAccumulate(d, pair, r[v], sums[q][v], odd);
      if constexpr (HWY_TARGET == HWY_EMU128) sums[q][v] = hn::Add(sums[q][v], odd);
      __asm__("" : "+v"(sums[q][v].raw));  // or else g++ adds products up first, and has no register for sums
    }
    __asm__ volatile("" ::: "memory");  // nor where it broadcasts all pairs first
  }
}

// A word of a query as two pairs: columns 0 and 2, 1 and 3.
template <bool kSigned>
HWY_INLINE void widen_queries(const uint32_t* panel, int64_t units, int32_t* pairs) {
  for (int64_t u = 0; u < units; ++u) {
    for (int q = 0; q < kQueries; ++q) {
      const uint32_t word = panel[u * kQueries + q];
      if constexpr (kSigned) {
        const auto wide = [word](int column) {
          return static_cast<uint32_t>(static_cast<uint16_t>(static_cast<int8_t>(word >> (8 * column))));
        };
        pairs[2 * u * kQueries + q] = static_cast<int32_t>(wide(0) | wide(2) << 16);
        pairs[(2 * u + 1) * kQueries + q] = static_cast<int32_t>(wide(1) | wide(3) << 16);
      } else {
        pairs[2 * u * kQueries + q] = static_cast<int32_t>(word & 0x00FF00FFu);
        pairs[(2 * u + 1) * kQueries + q] = static_cast<int32_t>(word >> 8 & 0x00FF00FFu);
      }
    }
  }
}

template <bool kSigned>
HWY_NOINLINE void scan_tile(const BytePanelQueries& queries, int64_t first_query, const int32_t* pairs,
                            const BytePanelBase& base, int64_t units, int64_t panel, BytePanelHits& hits) {
  const I32 d;
  Sums sums[kQueries][kVectors];
#pragma GCC unroll 16
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[q][v] = hn::Zero(d);
  }
  const int32_t* rows = static_cast<const int32_t*>(base.panels) + panel * kRows * units;
  for (int64_t u = 0; u < units; ++u) {
    add_pairs<kSigned, false>(pairs, rows, sums);
    add_pairs<kSigned, true>(pairs + kQueries, rows, sums);
    pairs += 2 * kQueries;
    rows += kRows;
  }
  int32_t limits[kQueries];
  for (int q = 0; q < kQueries; ++q) limits[q] = queries.limit(first_query + q, panel);
  // Values in place of sums, and whether any passes: nearly never.
  const int32_t* const terms = base.terms + panel * kRows;
  auto all_above = hn::Eq(hn::Zero(d), hn::Zero(d));
#pragma GCC unroll 16
  for (int q = 0; q < kQueries; ++q) {
    const Sums limit = hn::Set(d, limits[q]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Sums scaled = base.scale == 2 ? hn::Add(sums[q][v], sums[q][v]) : sums[q][v];
      sums[q][v] = hn::Sub(hn::Load(d, terms + v * kLanes), scaled);
      all_above = hn::And(all_above, hn::Gt(sums[q][v], limit));
    }
  }
  if (HWY_LIKELY(hn::AllTrue(d, all_above))) return;

  HWY_ALIGN int32_t values[kQueries][kRows];
  uint64_t passed[kQueries];
#pragma GCC unroll 16
  for (int q = 0; q < kQueries; ++q) {
    const Sums limit = hn::Set(d, limits[q]);
    passed[q] = 0;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      hn::Store(sums[q][v], d, values[q] + v * kLanes);
      uint8_t bits[8] = {};
      hn::StoreMaskBits(d, hn::Not(hn::Gt(sums[q][v], limit)), bits);
      passed[q] |= static_cast<uint64_t>(bits[0] | bits[1] << 8) << (v * kLanes);
    }
  }
  for (int q = 0; q < kQueries && first_query + q < queries.count; ++q) {
    if (passed[q] != 0) hits.on_hit(first_query + q, panel, passed[q], values[q]);
  }
}

template <bool kSigned>
void scan_all(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
              BytePanelHits& hits) {
  const int64_t units = packed_bytes(base.format, base.cols) / 4;
  HWY_ALIGN int32_t pairs[2 * kQueries * kMostWordColumns / 4];
  for (int64_t block = first; block < first + count; block += kPanelsAtOnce) {
    const int64_t end = std::min(block + kPanelsAtOnce, first + count);
    for (int64_t q = 0; q < queries.count; q += kQueries) {
      widen_queries<kSigned>(static_cast<const uint32_t*>(queries.panels) + q * units, units, pairs);
      for (int64_t panel = block; panel < end; ++panel) {
        scan_tile<kSigned>(queries, q, pairs, base, units, panel, hits);
      }
    }
  }
}

void ScanWords(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
               BytePanelHits& hits) {
  base.format == PanelFormat::i8 ? scan_all<true>(queries, base, first, count, hits)
                                 : scan_all<false>(queries, base, first, count, hits);
}

PanelShape WordShape() { return {kRows, kQueries, false, false}; }

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(ScanWords);
HWY_EXPORT(WordShape);

PanelShape word_panel_shape() { return HWY_DYNAMIC_DISPATCH(WordShape)(); }

void scan_bytes_words(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                      BytePanelHits& hits) {
  HWY_DYNAMIC_DISPATCH(ScanWords)(queries, base, first, count, hits);
}

}  // namespace kith
#endif

#endif
