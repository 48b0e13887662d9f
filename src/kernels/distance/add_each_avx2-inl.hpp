// Horizontal sums of eight AVX2 vectors, one result per lane, in 21 operations: fewer than summing each vector on its
// own. add_each_avx512-inl.hpp does the same for sixteen AVX-512 vectors.
#pragma once

#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/panels/x86_intrinsics.hpp"

namespace kith {

// Lane i: the sum of sums[i].
KITH_FOR("avx2") inline __m256i add_each(const __m256i (&sums)[8]) {
  const __m256i first = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
  const __m256i second = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[4], sums[5]), _mm256_hadd_epi32(sums[6], sums[7]));
  return _mm256_add_epi32(_mm256_permute2x128_si256(first, second, 0x20),
                          _mm256_permute2x128_si256(first, second, 0x31));
}

// Lane 2 i + j: the sum of the j-th half of sums[i].
KITH_FOR("avx2") inline __m256i add_halves(const __m256i (&sums)[4]) {
  const __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
  return _mm256_permutevar8x32_epi32(all, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

}  // namespace kith

#endif
