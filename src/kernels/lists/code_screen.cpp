#include "kernels/lists/code_screen.hpp"

#include "core/cpu_target.hpp"
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

// Loads sixteen bytes each of vectors at a distance of 16 * stride, one per block of a register.
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

// The same for contiguous codes of 1, 2, 4 or 8 bytes, from whole registers of them.
template <int kCodeBytes>
HWY_INLINE void transpose_narrow(const uint8_t* codes, uint8_t* columns) {
  const U8 d;
  for (int64_t i = 0; i < kColumnVectors; i += kBytes, codes += kCodeBytes * kBytes) {
    Bytes of[kCodeBytes];
    if constexpr (kCodeBytes == 1) of[0] = hn::LoadU(d, codes);
    if constexpr (kCodeBytes == 2) hn::LoadInterleaved2(d, codes, of[0], of[1]);
    if constexpr (kCodeBytes == 4) hn::LoadInterleaved4(d, codes, of[0], of[1], of[2], of[3]);
    if constexpr (kCodeBytes == 8) {
      const auto* const words = reinterpret_cast<const uint16_t*>(codes);
      Words low[4];
      Words high[4];
      hn::LoadInterleaved4(U16(), words, low[0], low[1], low[2], low[3]);
      hn::LoadInterleaved4(U16(), words + 2 * kBytes, high[0], high[1], high[2], high[3]);
#pragma GCC unroll 4
      for (int w = 0; w < 4; ++w) {
        of[2 * w] = hn::ConcatEven(d, hn::BitCast(d, high[w]), hn::BitCast(d, low[w]));
        of[2 * w + 1] = hn::ConcatOdd(d, hn::BitCast(d, high[w]), hn::BitCast(d, low[w]));
      }
    }
#pragma GCC unroll 8
    for (int b = 0; b < kCodeBytes; ++b) hn::StoreU(of[b], d, columns + b * kColumnVectors + i);
  }
}

// Transposes up to 64 codes: the first byte of each, the second, ...; any bytes after the last code. `there`: the
// number of codes in memory, so that sixteen bytes may be read where fewer are needed.
void TransposeBlock(int64_t bytes, const uint8_t* codes, int64_t count, int64_t there, uint8_t* columns) {
  uint8_t padded[kColumnVectors * kBlock];
  if (bytes <= 8 && (bytes & (bytes - 1)) == 0) {
    if (there < kColumnVectors) {
      std::memcpy(padded, codes, static_cast<size_t>(count * bytes));
      std::memset(padded + count * bytes, 0, static_cast<size_t>((kColumnVectors - count) * bytes));
      codes = padded;
    }
    if (bytes == 1) return transpose_narrow<1>(codes, columns);
    if (bytes == 2) return transpose_narrow<2>(codes, columns);
    if (bytes == 4) return transpose_narrow<4>(codes, columns);
    return transpose_narrow<8>(codes, columns);
  }
  for (int64_t b = 0; b < bytes; b += kBlock) {
    const int64_t group = std::min(kBlock, bytes - b);
    const uint8_t* from = codes + b;
    int64_t stride = bytes;
    if (b + (kColumnVectors - 1) * bytes + kBlock > there * bytes) {
      std::memset(padded, 0, sizeof padded);
      for (int64_t i = 0; i < count; ++i) {
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

void LimitsOfTerms(const float* terms, float start, float slope, int64_t count, uint16_t* below) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> whole;
  const hn::Rebind<uint16_t, decltype(d)> words;
  constexpr int64_t kFloats = hn::MaxLanes(hn::ScalableTag<float>());
  constexpr auto kMost = static_cast<float>(kAboveAllSums);
  int64_t i = 0;
  for (; i + kFloats <= count; i += kFloats) {
    const auto most = hn::Add(hn::Set(d, start), hn::Mul(hn::Set(d, slope), hn::LoadU(d, terms + i)));
    const auto above = hn::Add(most, hn::Set(d, 1.0f));
    const auto within = hn::IfThenElse(hn::Lt(above, hn::Set(d, kMost)), above, hn::Set(d, kMost));
    const auto limit = hn::ConvertTo(whole, hn::Max(within, hn::Zero(d)));
    hn::StoreU(hn::DemoteTo(words, limit), words, below + i);
  }
  for (; i < count; ++i) {
    const float above = start + slope * terms[i] + 1;
    const float within = above < kMost ? above : kMost;
    below[i] = static_cast<uint16_t>(static_cast<int32_t>(within < 0 ? 0.0f : within));
  }
}

// Sums of 16 bits in two registers. NEON widens bytes as it adds them: the first half of the vectors, then the second.
// Elsewhere sums are of all bytes and of the odd ones, so that adding a part takes no shuffle.
using Sums = Words[2];
#if HWY_ARCH_ARM_A64
HWY_INLINE void add_bytes(Bytes looked_up, Sums& sums) {
  const U16 d;
  const hn::Half<U8> half;
  sums[0] = hn::Add(sums[0], hn::PromoteTo(d, hn::LowerHalf(half, looked_up)));
  sums[1] = hn::Add(sums[1], hn::PromoteTo(d, hn::UpperHalf(half, looked_up)));
}
HWY_INLINE Words least_of(const Sums& sums) { return hn::Min(sums[0], sums[1]); }
HWY_INLINE void store_in_order(const Sums& sums, uint16_t* out) {
  const U16 d;
  hn::StoreU(sums[0], d, out);
  hn::StoreU(sums[1], d, out + kBytes / 2);
}
#else
HWY_INLINE void add_bytes(Bytes looked_up, Sums& sums) {
  const U16 d;
  const Words words = hn::BitCast(d, looked_up);
  sums[0] = hn::Add(sums[0], words);
  sums[1] = hn::Add(sums[1], hn::ShiftRight<8>(words));
}
HWY_INLINE Words even_sums(const Sums& sums) { return hn::Sub(sums[0], hn::ShiftLeft<8>(sums[1])); }
HWY_INLINE Words least_of(const Sums& sums) { return hn::Min(even_sums(sums), sums[1]); }
HWY_INLINE void store_in_order(const Sums& sums, uint16_t* out) {
  hn::StoreInterleaved2(even_sums(sums), sums[1], U16(), out);
}
#endif

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
#if HWY_ARCH_ARM_A64
      high[r] = hn::ShiftRight<4>(codes);
#else
      high[r] = hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(U16(), codes))), nibble);
#endif
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
  HWY_ALIGN uint16_t values[kBytes];
  store_in_order(sums, values);
  uint32_t* const rows = query.rows;
  int64_t found = query.found;
  for (int64_t i = 0; i < kBytes; ++i) {
    rows[found] = static_cast<uint32_t>(first + i);
    found += (values[i] <= query.most) & (first + i < count);
  }
  query.found = found;
}

// One block of 64 vectors, from number `first` on.
template <int kQueries>
HWY_INLINE void screen_nibbles(const uint8_t* columns, int64_t bytes, int64_t first, int64_t count,
                               ScreenQuery* queries) {
  // Sums take two registers each: sixteen in all where there are 32 registers, eight where there are 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
  constexpr int kMost = 8 / kQueries;
#else
  constexpr int kMost = 4 / kQueries;
#endif
  constexpr int kRegisters = std::clamp<int>(kMost, 1, std::min<int>(4, static_cast<int>(kColumnVectors / kBytes)));
  const U16 d;
  const uint8_t* tables[kQueries];
  for (int q = 0; q < kQueries; ++q) tables[q] = queries[q].tables;
  for (int64_t i = 0; i < kColumnVectors; i += kRegisters * kBytes) {
    Sums sums[kQueries][kRegisters];
    sum_nibbles<kQueries, kRegisters>(columns + i, bytes, tables, sums);
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
      Words least = least_of(sums[q][0]);
#pragma GCC unroll 4
      for (int r = 1; r < kRegisters; ++r) least = hn::Min(least, least_of(sums[q][r]));
      // Nearly always none passes.
      if (HWY_LIKELY(hn::AllFalse(d, hn::Eq(hn::Min(least, hn::Set(d, queries[q].most)), least)))) continue;
      for (int r = 0; r < kRegisters; ++r) tell(sums[q][r], first + i + r * kBytes, count, queries[q]);
    }
  }
}

void ScreenNibbles(int64_t bytes, const uint8_t* codes, int64_t count, ScreenQuery* queries, int64_t query_count) {
  HWY_ALIGN uint8_t block[kColumnVectors * kMostByteParts / 2];
  for (int64_t first = 0; first < count; first += kColumnVectors) {
    TransposeBlock(bytes, codes + first * bytes, std::min(kColumnVectors, count - first), count - first, block);
    int64_t q = 0;
    for (; q + 4 <= query_count; q += 4) screen_nibbles<4>(block, bytes, first, count, queries + q);
    if (q + 2 <= query_count) {
      screen_nibbles<2>(block, bytes, first, count, queries + q);
      q += 2;
    }
    if (q < query_count) screen_nibbles<1>(block, bytes, first, count, queries + q);
  }
}

// The sums of a block.
void SumNibbles(int64_t bytes, const uint8_t* block, const uint8_t* tables, uint16_t* sums) {
  const uint8_t* const one[1] = {tables};
  for (int64_t i = 0; i < kColumnVectors; i += kBytes) {
    Sums found[1][1];
    sum_nibbles<1, 1>(block + i, bytes, one, found);
    store_in_order(found[0][0], sums + i);
  }
}

// 8-bit parts of a block, where there is no VBMI: in the registers of the target.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
void SumByteColumns(int64_t parts, const uint8_t* block, const uint8_t* tables, uint16_t* sums) {
#if HWY_TARGET <= HWY_AVX3
  sum_byte_columns_avx512(parts, block, tables, sums);
#else
  sum_byte_columns_avx2(parts, block, tables, sums);
#endif
}
uint64_t ScreenByteColumns(int64_t parts, const uint8_t* block, const uint8_t* tables, const uint16_t* below,
                           ScreenLook& look) {
#if HWY_TARGET <= HWY_AVX3
  return screen_byte_columns_avx512(parts, block, tables, below, look);
#else
  return screen_byte_columns_avx2(parts, block, tables, below, look);
#endif
}
#elif HWY_ARCH_X86  // has_code_screen() says that there is none
void SumByteColumns(int64_t, const uint8_t*, const uint8_t*, uint16_t*) {}
uint64_t ScreenByteColumns(int64_t, const uint8_t*, const uint8_t*, const uint16_t*, ScreenLook&) { return ~uint64_t{0}; }
#endif

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(LimitsOfTerms);
HWY_EXPORT(TransposeBlock);
HWY_EXPORT(ScreenNibbles);
HWY_EXPORT(SumNibbles);
#if HWY_ARCH_X86
HWY_EXPORT(SumByteColumns);
HWY_EXPORT(ScreenByteColumns);
#endif

namespace {

// Sums of a transposed block of codes.
void sum_block(const CodeFormat& format, const uint8_t* block, const uint8_t* tables, uint16_t* sums) {
#if defined(KITH_ARM)
  if (format.bits == 8) return sum_byte_columns_neon(format.parts, block, tables, sums);
#elif defined(KITH_X86)
  if (format.bits == 8) {
    if (cpu_extensions().vbmi) return sum_byte_columns_vbmi(format.parts, block, tables, sums);
    return HWY_DYNAMIC_DISPATCH(SumByteColumns)(format.parts, block, tables, sums);
  }
#endif
  HWY_DYNAMIC_DISPATCH(SumNibbles)(format.bytes(), block, tables, sums);
}

// A block by all sums.
uint64_t screen_sums(const CodeFormat& format, const uint8_t* block, const uint8_t* tables, const uint16_t* below,
                     ScreenLook&) {
  uint16_t sums[kColumnVectors];
  sum_block(format, block, tables, sums);
  unsigned any = 0;
  for (int64_t i = 0; i < kColumnVectors; ++i) any |= static_cast<unsigned>(sums[i] < below[i]);
  uint64_t bits = 0;
  for (int64_t i = 0; any != 0 && i < kColumnVectors; ++i) bits |= static_cast<uint64_t>(sums[i] < below[i]) << i;
  return bits;
}

}  // namespace

BlockScreen block_screen(const CodeFormat& format) {
  if (format.bits != 8) return screen_sums;
#if defined(KITH_ARM)
  return [](const CodeFormat& own, const uint8_t* block, const uint8_t* tables, const uint16_t* below,
            ScreenLook& look) { return screen_byte_columns_neon(own.parts, block, tables, below, look); };
#elif defined(KITH_X86)
  if (cpu_extensions().vbmi) {
    return [](const CodeFormat& own, const uint8_t* block, const uint8_t* tables, const uint16_t* below,
              ScreenLook&) { return screen_byte_columns_vbmi(own.parts, block, tables, below); };
  }
  return [](const CodeFormat& own, const uint8_t* block, const uint8_t* tables, const uint16_t* below,
            ScreenLook& look) {
    return HWY_DYNAMIC_DISPATCH(ScreenByteColumns)(own.parts, block, tables, below, look);
  };
#else
  return screen_sums;
#endif
}

bool has_code_screen(const CodeFormat& format, [[maybe_unused]] const CpuExtensions& cpu) {
  if (!format.copies_codewords() || format.parts > kMostByteParts) return false;
  if (format.bits == 4) return true;
#if defined(KITH_ARM)
  return format.bits == 8;
#else
  return format.bits == 8 && (cpu.vbmi || cpu.avx2);
#endif
}

void screen_codes(const CodeFormat& format, const uint8_t* codes, int64_t count, ScreenQuery* queries,
                  int64_t query_count) {
  const int64_t bytes = format.bytes();
  if (format.bits == 4) return HWY_DYNAMIC_DISPATCH(ScreenNibbles)(bytes, codes, count, queries, query_count);
  alignas(64) uint8_t block[kColumnVectors * kMostByteParts];
  uint16_t below[kColumnVectors];
  const BlockScreen screen_block = block_screen(format);
  for (int64_t first = 0; first < count; first += kColumnVectors) {
    const int64_t here = std::min(kColumnVectors, count - first);
    HWY_DYNAMIC_DISPATCH(TransposeBlock)(bytes, codes + first * bytes, here, count - first, block);
    for (ScreenQuery* query = queries; query < queries + query_count; ++query) {
      if (first == 0 || query_count > 1 || here < kColumnVectors) {
        std::fill_n(below, here, static_cast<uint16_t>(std::min<int>(query->most + 1, kAboveAllSums)));
        std::fill_n(below + here, kColumnVectors - here, uint16_t{0});
      }
      const uint64_t passing = screen_block(format, block, query->tables, below, query->look);
      query->found = tell_bits(passing, first, query->rows, query->found);
    }
  }
}

void limits_of_terms(const float* terms, float start, float slope, int64_t count, uint16_t* below) {
  HWY_DYNAMIC_DISPATCH(LimitsOfTerms)(terms, start, slope, count, below);
}

void transpose_codes(const CodeFormat& format, const uint8_t* codes, int64_t count, int64_t there, uint8_t* block) {
  HWY_DYNAMIC_DISPATCH(TransposeBlock)(format.bytes(), codes, count, there, block);
}

void sum_codes(const CodeFormat& format, const uint8_t* codes, int64_t count, const uint8_t* tables, uint16_t* sums) {
  const int64_t bytes = format.bytes();
  alignas(64) uint8_t block[kColumnVectors * kMostByteParts];
  for (int64_t first = 0; first < count; first += kColumnVectors) {
    HWY_DYNAMIC_DISPATCH(TransposeBlock)
    (bytes, codes + first * bytes, std::min(kColumnVectors, count - first), count - first, block);
    sum_block(format, block, tables, sums + first);
  }
}

}  // namespace kith
#endif
