// 8-bit codes looked up in registers: a table of 256 bytes is four of AVX-512's, and two permutations by two registers
// each and a blend look 64 bytes up. Sums of 16 bits are of all bytes and of the odd ones, so that adding a part takes no
// shuffle. Cost: about five cycles for a part of 64 vectors.
#include "kernels/lists/code_screen.hpp"
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/panels/x86_intrinsics.hpp"

#define KITH_FOR_VBMI KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")

namespace kith {
namespace {

static_assert(kColumnVectors == 64);

KITH_FOR_VBMI inline __m512i look_up(const uint8_t* table, __m512i codes) {
  const __m512i low = _mm512_permutex2var_epi8(_mm512_loadu_si512(table), codes, _mm512_loadu_si512(table + 64));
  const __m512i high =
      _mm512_permutex2var_epi8(_mm512_loadu_si512(table + 128), codes, _mm512_loadu_si512(table + 192));
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(codes), low, high);
}

// The sums of a block's vectors in their order, 32 in each.
struct BlockSums {
  __m512i first;
  __m512i second;
};

KITH_FOR_VBMI inline BlockSums sum_columns(int64_t parts, const uint8_t* block, const uint8_t* tables) {
  __m512i all = _mm512_setzero_si512();
  __m512i odd = all;
#pragma GCC unroll 4
  for (int64_t p = 0; p < parts; ++p) {
    const __m512i found = look_up(tables + p * 256, _mm512_loadu_si512(block + p * kColumnVectors));
    all = _mm512_add_epi16(all, found);
    odd = _mm512_add_epi16(odd, _mm512_srli_epi16(found, 8));
  }
  const __m512i even = _mm512_sub_epi16(all, _mm512_slli_epi16(odd, 8));
  // Quarter i: the vectors from 16 i on, and those from 16 i + 8 on.
  const __m512i low = _mm512_unpacklo_epi16(even, odd);
  const __m512i high = _mm512_unpackhi_epi16(even, odd);
  return {_mm512_permutex2var_epi64(low, _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), high),
          _mm512_permutex2var_epi64(low, _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4), high)};
}

}  // namespace

KITH_FOR_VBMI uint64_t screen_byte_columns_vbmi(int64_t parts, const uint8_t* block, const uint8_t* tables,
                                                const uint16_t* below) {
  const BlockSums sums = sum_columns(parts, block, tables);
  const uint64_t first = _mm512_cmplt_epu16_mask(sums.first, _mm512_loadu_si512(below));
  const uint64_t second = _mm512_cmplt_epu16_mask(sums.second, _mm512_loadu_si512(below + 32));
  return second << 32 | first;
}

KITH_FOR_VBMI void sum_byte_columns_vbmi(int64_t parts, const uint8_t* block, const uint8_t* tables, uint16_t* sums) {
  const BlockSums found = sum_columns(parts, block, tables);
  _mm512_storeu_si512(sums, found.first);
  _mm512_storeu_si512(sums + 32, found.second);
}

}  // namespace kith

#endif
