#include "kernels/panels/byte_product.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/panels/byte_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/rounded_panels.hpp"

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
  // A query's bytes are at a distance of kQueries.
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

namespace {

constexpr int32_t kShift = 128;

template <typename T>
ByteSums sums_of(const uint8_t* row, int64_t cols) {
  ByteSums sums;
  for (int64_t c = 0; c < cols; ++c) {
    const int32_t value = static_cast<T>(row[c]);
    sums.sum += value;
    sums.squares += value * value;
  }
  return sums;
}

}  // namespace

void encode_byte_row(PanelFormat format, const PanelShape& shape, const uint8_t* row, int64_t cols, int64_t padded,
                     uint8_t* out) {
  const uint8_t flip = shape.signed_bytes && format == PanelFormat::u8 ? 0x80 : 0;  // subtracts 128
  for (int64_t c = 0; c < cols; ++c) out[c] = row[c] ^ flip;
  std::fill(out + cols, out + padded, uint8_t{0});
}

void encode_byte_query(PanelFormat format, const PanelShape& shape, const float* query, int64_t cols, int64_t padded,
                       uint8_t* out) {
  const int32_t shift = shape.signed_bytes && format == PanelFormat::i8 ? kShift : 0;
  for (int64_t c = 0; c < cols; ++c) out[c] = static_cast<uint8_t>(static_cast<int32_t>(query[c]) + shift);
  std::fill(out + cols, out + padded, uint8_t{0});
}

ByteSums byte_sums(PanelFormat format, const uint8_t* row, int64_t cols) {
  return format == PanelFormat::i8 ? sums_of<int8_t>(row, cols) : sums_of<uint8_t>(row, cols);
}

int32_t byte_row_term(PanelFormat format, const PanelShape& shape, KeyKind kind, const ByteSums& row) {
  const int32_t scale = has_differences(kind) ? 2 : 1;
  const int32_t shifted = shape.signed_bytes && format == PanelFormat::i8 ? scale * kShift * row.sum : 0;
  return (has_differences(kind) ? row.squares : 0) + shifted;
}

int32_t byte_query_offset(PanelFormat format, const PanelShape& shape, KeyKind kind, const ByteSums& query) {
  const int32_t scale = has_differences(kind) ? 2 : 1;
  const int32_t shifted = shape.signed_bytes && format == PanelFormat::u8 ? scale * kShift * query.sum : 0;
  return (has_differences(kind) ? query.squares : 0) - shifted;
}

bool has_byte_product(int64_t cols, const CpuExtensions& cpu) {
#if defined(KITH_X86)
  if (cols <= kMostWordColumns) return true;
#endif
  return (cpu.dotprod || cpu.vnni || cpu.amx) && cols <= kMostByteColumns;
}

void scan_byte_panels(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                      BytePanelHits& hits) {
  if (base.format == PanelFormat::bits) {
    return HWY_DYNAMIC_DISPATCH(ScanBitPanels)(queries, base, first, count, hits);
  }
#if defined(KITH_X86)
  const CpuExtensions cpu = cpu_extensions();
  return cpu.amx    ? scan_bytes_amx(queries, base, first, count, hits)
         : cpu.vnni ? scan_bytes_vnni(queries, base, first, count, hits)
                    : scan_bytes_words(queries, base, first, count, hits);
#elif defined(KITH_ARM)
  return scan_bytes_dotprod(queries, base, first, count, hits);
#endif
}

PanelShape panel_shape(PanelFormat format) {
  if (holds_f32(format) || format == PanelFormat::norms) return f32_panel_shape();
  if (format == PanelFormat::bits) return HWY_DYNAMIC_DISPATCH(BitPanelShape)();
  const CpuExtensions cpu = cpu_extensions();
  if (cpu.amx && format != PanelFormat::rounded) return {32, 32, true, false};
  if (cpu.vnni) return {48, 8, false, true};
#if defined(KITH_X86)
  return word_panel_shape();
#else
  return {12, 8, false, false};
#endif
}

ByteForm rounded_query_form() {
  const CpuExtensions cpu = cpu_extensions();
  return cpu.vnni ? kVnniQueryForm : cpu.avx2 ? kAvx2QueryForm : ByteForm{};
}

void scan_rounded_panels([[maybe_unused]] const RoundedQueries& queries, [[maybe_unused]] const RoundedBase& base,
                         [[maybe_unused]] int64_t first, [[maybe_unused]] int64_t count,
                         [[maybe_unused]] PanelHits& hits) {
#if defined(KITH_X86)
  cpu_extensions().vnni ? scan_rounded_vnni(queries, base, first, count, hits)
                        : scan_rounded_avx2(queries, base, first, count, hits);
#elif defined(KITH_ARM)
  scan_rounded_dotprod(queries, base, first, count, hits);
#endif
}

}  // namespace kith
#endif
