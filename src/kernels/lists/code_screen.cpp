#include "kernels/lists/code_screen.hpp"

#include "kernels/lists/code_tables.hpp"
#include "kernels/panels/instruction_family.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lists/code_screen.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using U8 = hn::ScalableTag<uint8_t>;
using U16 = hn::Repartition<uint16_t, U8>;
using Bytes = hn::Vec<U8>;
using Words = hn::Vec<U16>;
constexpr int64_t kBytes = hn::MaxLanes(U8());
constexpr int64_t kBlock = 16;  // bytes that a shuffle stays within
static_assert(kColumnVectors % kBytes == 0);

// Sixteen bytes of vectors that lie 16 * stride apart, one for each block of a register.
template <typename D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const uint8_t* codes, int64_t stride) {
  if constexpr (hn::MaxLanes(D()) <= kBlock) {
    return hn::LoadU(d, codes);
  } else {
    const hn::Half<D> half;
    constexpr int64_t kBlocks = hn::MaxLanes(hn::Half<D>()) / kBlock;
    return hn::Combine(d, load_blocks(half, codes + kBlocks * kBlock * stride, stride),
                       load_blocks(half, codes, stride));
  }
}

// Byte b of kBytes vectors to columns[b * kColumnVectors], for 16 bytes. Each round deals the first half of the
// registers and the second half out in turn, like cards: after four of them vectors and bytes have changed places.
HWY_INLINE void transpose_sixteen(const uint8_t* codes, int64_t stride, int64_t bytes, uint8_t* columns) {
  const U8 d;
  Bytes a[16];
  Bytes b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) a[i] = load_blocks(d, codes + i * stride, stride);
#pragma GCC unroll 2
  for (int twice = 0; twice < 2; ++twice) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      b[2 * i] = hn::InterleaveLower(d, a[i], a[i + 8]);
      b[2 * i + 1] = hn::InterleaveUpper(d, a[i], a[i + 8]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      a[2 * i] = hn::InterleaveLower(d, b[i], b[i + 8]);
      a[2 * i + 1] = hn::InterleaveUpper(d, b[i], b[i + 8]);
    }
  }
  if (bytes == 16) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) hn::StoreU(a[i], d, columns + i * kColumnVectors);
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      if (i < bytes) hn::StoreU(a[i], d, columns + i * kColumnVectors);
    }
  }
}

void TransposeCodes(int64_t bytes, const uint8_t* codes, int64_t count, uint8_t* columns) {
  uint8_t padded[kColumnVectors * kBlock] = {};
  for (int64_t first = 0; first < count; first += kColumnVectors, columns += kColumnVectors * bytes) {
    const int64_t here = std::min(kColumnVectors, count - first);
    for (int64_t b = 0; b < bytes; b += kBlock) {
      const int64_t group = std::min(kBlock, bytes - b);
      const uint8_t* from = codes + first * bytes + b;
      int64_t stride = bytes;
      if (here < kColumnVectors || group < kBlock) {
        for (int64_t i = 0; i < here; ++i) {
          std::memcpy(padded + i * kBlock, from + i * bytes, static_cast<size_t>(group));
        }
        from = padded;
        stride = kBlock;
      }
      for (int64_t i = 0; i < kColumnVectors; i += kBytes) {
        transpose_sixteen(from + i * stride, stride, group, columns + b * kColumnVectors + i);
      }
    }
  }
}

// Sums of 16 bits are of all bytes and of the odd ones, so that adding a part takes no shuffle.
using Sums = Words[2];
HWY_INLINE void add_bytes(Bytes looked_up, Sums& sums) {
  const U16 d;
  const Words words = hn::BitCast(d, looked_up);
  sums[0] = hn::Add(sums[0], words);
  sums[1] = hn::Add(sums[1], hn::ShiftRight<8>(words));
}
HWY_INLINE Words even_sums(const Sums& sums) { return hn::Sub(sums[0], hn::ShiftLeft<8>(sums[1])); }

// Vectors of kRegisters registers and kQueries queries: their sums over all pairs of 4-bit parts.
template <int kQueries, int kRegisters>
HWY_INLINE void sum_nibbles(const uint8_t* columns, int64_t bytes, const uint8_t* const (&tables)[kQueries],
                            Sums (&sums)[kQueries][kRegisters]) {
  const U8 d;
  const Bytes nibble = hn::Set(d, 15);
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (int r = 0; r < kRegisters; ++r) sums[q][r][0] = sums[q][r][1] = hn::Zero(U16());
  }
  for (int64_t b = 0; b < bytes; ++b, columns += kColumnVectors) {
    Bytes low[kRegisters];
    Bytes high[kRegisters];
#pragma GCC unroll 4
    for (int r = 0; r < kRegisters; ++r) {
      const Bytes codes = hn::LoadU(d, columns + r * kBytes);
      low[r] = hn::And(codes, nibble);
      high[r] = hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(U16(), codes))), nibble);
    }
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
      const Bytes first = hn::LoadDup128(d, tables[q] + b * 32);
      const Bytes second = hn::LoadDup128(d, tables[q] + b * 32 + 16);
#pragma GCC unroll 4
      for (int r = 0; r < kRegisters; ++r) {
        add_bytes(hn::TableLookupBytes(first, low[r]), sums[q][r]);
        add_bytes(hn::TableLookupBytes(second, high[r]), sums[q][r]);
      }
    }
  }
}

// The vectors of a register, from number `first` on, whose sums are not above the query's.
HWY_INLINE void tell(const Sums& sums, int64_t first, int64_t count, ScreenQuery& query) {
  const U16 d;
  const Words most = hn::Set(d, query.most);
  const Words even = even_sums(sums);
  const auto passes = hn::Or(hn::Eq(hn::Min(even, most), even), hn::Eq(hn::Min(sums[1], most), sums[1]));
  if (hn::AllFalse(d, passes)) return;
  HWY_ALIGN uint16_t evens[kBytes / 2];
  HWY_ALIGN uint16_t odds[kBytes / 2];
  hn::Store(even, d, evens);
  hn::Store(sums[1], d, odds);
  uint32_t* const rows = query.rows;
  int64_t found = query.found;
  for (int64_t i = 0; i < kBytes / 2; ++i) {
    rows[found] = static_cast<uint32_t>(first + 2 * i);
    found += (evens[i] <= query.most) & (first + 2 * i < count);
    rows[found] = static_cast<uint32_t>(first + 2 * i + 1);
    found += (odds[i] <= query.most) & (first + 2 * i + 1 < count);
  }
  query.found = found;
}

template <int kQueries>
void screen_nibbles(const uint8_t* columns, int64_t bytes, int64_t count, ScreenQuery* queries) {
  // Sums take two registers each: sixteen in all where there are 32 registers, eight where there are 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
  constexpr int kMost = 8 / kQueries;
#else
  constexpr int kMost = 4 / kQueries;
#endif
  constexpr int kRegisters =
      std::clamp<int>(kMost, 1, std::min<int>(4, static_cast<int>(kColumnVectors / kBytes)));
  const uint8_t* tables[kQueries];
  for (int q = 0; q < kQueries; ++q) tables[q] = queries[q].tables;
  for (int64_t first = 0; first < count; first += kColumnVectors, columns += kColumnVectors * bytes) {
    for (int64_t i = 0; i < kColumnVectors; i += kRegisters * kBytes) {
      Sums sums[kQueries][kRegisters];
      sum_nibbles<kQueries, kRegisters>(columns + i, bytes, tables, sums);
#pragma GCC unroll 8
      for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
        for (int r = 0; r < kRegisters; ++r) tell(sums[q][r], first + i + r * kBytes, count, queries[q]);
      }
    }
  }
}

void ScreenNibbles(int64_t bytes, const uint8_t* columns, int64_t count, ScreenQuery* queries, int64_t query_count) {
  int64_t q = 0;
  for (; q + 4 <= query_count; q += 4) screen_nibbles<4>(columns, bytes, count, queries + q);
  if (q + 2 <= query_count) {
    screen_nibbles<2>(columns, bytes, count, queries + q);
    q += 2;
  }
  if (q < query_count) screen_nibbles<1>(columns, bytes, count, queries + q);
}

void SumNibbles(int64_t bytes, const uint8_t* block, const uint8_t* tables, uint16_t* sums) {
  const U16 d;
  const uint8_t* const one[1] = {tables};
  HWY_ALIGN uint16_t evens[kBytes / 2];
  HWY_ALIGN uint16_t odds[kBytes / 2];
  for (int64_t i = 0; i < kColumnVectors; i += kBytes) {
    Sums found[1][1];
    sum_nibbles<1, 1>(block + i, bytes, one, found);
    hn::Store(even_sums(found[0][0]), d, evens);
    hn::Store(found[0][0][1], d, odds);
    for (int64_t j = 0; j < kBytes / 2; ++j) {
      sums[i + 2 * j] = evens[j];
      sums[i + 2 * j + 1] = odds[j];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(TransposeCodes);
HWY_EXPORT(ScreenNibbles);
HWY_EXPORT(SumNibbles);

CodeScreen choose_code_screen(const CodeFormat& format, [[maybe_unused]] const CpuExtensions& cpu) {
  if (format.kind != CodeKind::product || format.parts > kMostByteParts) return CodeScreen::none;
  if (format.bits == 4) return CodeScreen::columns;
  if (format.bits != 8) return CodeScreen::none;
#if defined(KITH_ARM)
  return CodeScreen::columns;
#else
  return cpu.vbmi ? CodeScreen::rows : CodeScreen::none;
#endif
}

void transpose_codes(const CodeFormat& format, const uint8_t* codes, int64_t count, uint8_t* columns) {
  HWY_DYNAMIC_DISPATCH(TransposeCodes)(format.bytes(), codes, count, columns);
}

void screen_code_columns(const CodeFormat& format, const uint8_t* columns, int64_t count, ScreenQuery* queries,
                         int64_t query_count) {
  if (format.bits == 4) {
    return HWY_DYNAMIC_DISPATCH(ScreenNibbles)(format.bytes(), columns, count, queries, query_count);
  }
  uint16_t sums[kColumnVectors];
  for (ScreenQuery* query = queries; query < queries + query_count; ++query) {
    const uint8_t* block = columns;
    int64_t found = query->found;
    for (int64_t first = 0; first < count; first += kColumnVectors, block += kColumnVectors * format.bytes()) {
      sum_code_columns(format, block, kColumnVectors, query->tables, sums);
      const int64_t here = std::min(kColumnVectors, count - first);
      uint16_t least = 0xFFFF;
      for (int64_t i = 0; i < kColumnVectors; ++i) least = std::min(least, sums[i]);
      if (least > query->most) continue;
      for (int64_t i = 0; i < here; ++i) {
        query->rows[found] = static_cast<uint32_t>(first + i);
        found += sums[i] <= query->most;
      }
    }
    query->found = found;
  }
}

void sum_code_columns(const CodeFormat& format, const uint8_t* columns, int64_t count, const uint8_t* tables,
                      uint16_t* sums) {
  for (int64_t first = 0; first < count; first += kColumnVectors) {
    if (format.bits == 4) {
      HWY_DYNAMIC_DISPATCH(SumNibbles)(format.bytes(), columns, tables, sums + first);
    } else {
#if defined(KITH_ARM)
      sum_byte_columns_neon(format.parts, columns, tables, sums + first);
#endif
    }
    columns += kColumnVectors * format.bytes();
  }
}

}  // namespace kith
#endif
