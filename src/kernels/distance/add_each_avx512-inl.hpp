// Horizontal sums of sixteen AVX-512 vectors, one result per lane, in 45 operations: fewer than one vector at a time.
#pragma once

#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/panels/x86_intrinsics.hpp"

namespace kith {

inline constexpr int kSumsTogether = 16;

// Adds neighbouring quarters, first those of a, then those of b.
KITH_FOR("avx512f") inline __m512i add_halves(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
}

// Lane i: the sum of sums[i].
KITH_FOR("avx512f") inline __m512i add_each(const __m512i (&sums)[kSumsTogether]) {
  __m512i pairs[kSumsTogether / 2];
#pragma GCC unroll 8
  for (int i = 0; i < kSumsTogether / 2; ++i) {
    const __m512i a = sums[2 * i];
    const __m512i b = sums[2 * i + 1];
    pairs[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  }
  __m512i fours[kSumsTogether / 4];
#pragma GCC unroll 4
  for (int i = 0; i < kSumsTogether / 4; ++i) {
    const __m512i a = pairs[2 * i];
    const __m512i b = pairs[2 * i + 1];
    fours[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  }
  return add_halves(add_halves(fours[0], fours[1]), add_halves(fours[2], fours[3]));
}

// Lane 4 i + j: the sum of the j-th quarter of sums[i].
KITH_FOR("avx512f") inline __m512i add_quarters(const __m512i (&sums)[4]) {
  const __m512i a = _mm512_add_epi32(_mm512_unpacklo_epi32(sums[0], sums[1]), _mm512_unpackhi_epi32(sums[0], sums[1]));
  const __m512i b = _mm512_add_epi32(_mm512_unpacklo_epi32(sums[2], sums[3]), _mm512_unpackhi_epi32(sums[2], sums[3]));
  const __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), all);
}

}  // namespace kith

#endif
