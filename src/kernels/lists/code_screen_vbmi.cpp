// 8-bit codes looked up in registers: a table of 256 bytes is four of them, and two permutations by two registers each
// and a blend look 64 bytes up. Codes lie vector by vector; 16 bytes of 64 vectors are transposed first. Sums of 16
// bits are of all bytes and of the odd ones, so that adding a part takes no shuffle.
#include "kernels/lists/code_screen.hpp"
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/panels/x86_intrinsics.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#define KITH_FOR_VBMI KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")

namespace kith {
namespace {

constexpr int64_t kVectors = 64;
constexpr int kGroup = 16;  // parts

// Byte p of 64 vectors in out[p], vector i at byte i.
KITH_FOR_VBMI inline void transpose(const uint8_t* codes, int64_t stride, __m512i (&out)[kGroup]) {
  __m512i from[kGroup];
#pragma GCC unroll 16
  for (int j = 0; j < kGroup; ++j) {  // lane L has vector 16 L + j
    const uint8_t* const at = codes + j * stride;
    __m512i all = _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    all = _mm512_inserti32x4(all, _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16 * stride)), 1);
    all = _mm512_inserti32x4(all, _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 32 * stride)), 2);
    from[j] = _mm512_inserti32x4(all, _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 48 * stride)), 3);
  }
  // Each round deals the first half of the registers and the second half out in turn, like cards: after four of them
  // vectors and bytes have changed places.
  __m512i to[kGroup];
#pragma GCC unroll 2
  for (int twice = 0; twice < 2; ++twice) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      to[2 * i] = _mm512_unpacklo_epi8(from[i], from[i + 8]);
      to[2 * i + 1] = _mm512_unpackhi_epi8(from[i], from[i + 8]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      from[2 * i] = _mm512_unpacklo_epi8(to[i], to[i + 8]);
      from[2 * i + 1] = _mm512_unpackhi_epi8(to[i], to[i + 8]);
    }
  }
#pragma GCC unroll 16
  for (int p = 0; p < kGroup; ++p) out[p] = from[p];
}

KITH_FOR_VBMI inline __m512i look_up(const uint8_t* table, __m512i codes) {
  const __m512i low = _mm512_permutex2var_epi8(_mm512_loadu_si512(table), codes, _mm512_loadu_si512(table + 64));
  const __m512i high =
      _mm512_permutex2var_epi8(_mm512_loadu_si512(table + 128), codes, _mm512_loadu_si512(table + 192));
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(codes), low, high);
}

}  // namespace

KITH_FOR_VBMI int64_t screen_codes_vbmi(const CodeFormat& format, const uint8_t* bytes, const uint8_t* codes,
                                        int64_t count, uint16_t most, uint32_t* rows) {
  const int64_t parts = format.parts;
  const int64_t apart = format.bytes();  // more than the parts where something lies behind them
  const __m512i limit = _mm512_set1_epi16(static_cast<int16_t>(most));
  int64_t found = 0;
  alignas(64) uint8_t padded[kVectors * kGroup];
  for (int64_t first = 0; first < count; first += kVectors) {
    const int64_t here = std::min(kVectors, count - first);
    __m512i all = _mm512_setzero_si512();
    __m512i odd = _mm512_setzero_si512();
    for (int64_t p = 0; p < parts; p += kGroup) {
      const int64_t group = std::min<int64_t>(kGroup, parts - p);
      __m512i columns[kGroup];
      if (here == kVectors && group == kGroup) {
        transpose(codes + first * apart + p, apart, columns);
      } else {
        for (int64_t i = 0; i < here; ++i) {
          std::memcpy(padded + i * kGroup, codes + (first + i) * apart + p, static_cast<size_t>(group));
        }
        transpose(padded, kGroup, columns);
      }
      const auto add = [&](int64_t j) KITH_FOR_VBMI {
        const __m512i looked_up = look_up(bytes + (p + j) * 256, columns[j]);
        all = _mm512_add_epi16(all, looked_up);
        odd = _mm512_add_epi16(odd, _mm512_srli_epi16(looked_up, 8));
      };
      if (group == kGroup) {
#pragma GCC unroll 16
        for (int64_t j = 0; j < kGroup; ++j) add(j);
      } else {
        for (int64_t j = 0; j < group; ++j) add(j);
      }
    }
    const __m512i even = _mm512_sub_epi16(all, _mm512_slli_epi16(odd, 8));
    uint64_t pass_even = _mm512_cmple_epu16_mask(even, limit);
    uint64_t pass_odd = _mm512_cmple_epu16_mask(odd, limit);
    for (; pass_even != 0; pass_even &= pass_even - 1) {
      const int64_t i = 2 * std::countr_zero(pass_even);
      rows[found] = static_cast<uint32_t>(first + i);
      found += i < here;
    }
    for (; pass_odd != 0; pass_odd &= pass_odd - 1) {
      const int64_t i = 2 * std::countr_zero(pass_odd) + 1;
      rows[found] = static_cast<uint32_t>(first + i);
      found += i < here;
    }
  }
  return found;
}

}  // namespace kith

#endif
