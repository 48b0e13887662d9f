// Bits that differ, with AVX-512's counts of the bits of words: eight rows at a time, whose sums are then added in a
// tree that leaves one sum in each lane. Cost: three operations for 64 bytes of a row, and three for the row.
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include <immintrin.h>

#include <algorithm>

#define KITH_FOR_VPOPCNT KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq")

namespace kith {
namespace {

constexpr int kRows = 8;
constexpr int64_t kBytes = 64;

// Lanes a0+a1, a2+a3, ... and then b's.
KITH_FOR_VPOPCNT inline __m512i add_pairs(__m512i a, __m512i b) {
  const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
  const __m512i odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
  return _mm512_add_epi64(_mm512_permutex2var_epi64(a, even, b), _mm512_permutex2var_epi64(a, odd, b));
}

KITH_FOR_VPOPCNT inline __m512i bits_apart(__m512i a, __m512i b) { return _mm512_popcnt_epi64(_mm512_xor_si512(a, b)); }

// Adds the counts of `count` rows, up to eight, to their values.
KITH_FOR_VPOPCNT void scan_group(const uint8_t* query, const uint8_t* const* rows, int64_t cols, int64_t count,
                                 float* values) {
  __m512i sums[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sums[r] = _mm512_setzero_si512();
  int64_t c = 0;
  for (; c + kBytes <= cols; c += kBytes) {
    const __m512i q = _mm512_loadu_si512(query + c);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      sums[r] = _mm512_add_epi64(sums[r], bits_apart(q, _mm512_loadu_si512(rows[r] + c)));
    }
  }
  if (c < cols) {  // lanes that are masked out are not read
    const auto real = static_cast<__mmask64>(~uint64_t{0} >> (kBytes - (cols - c)));
    const __m512i q = _mm512_maskz_loadu_epi8(real, query + c);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      sums[r] = _mm512_add_epi64(sums[r], bits_apart(q, _mm512_maskz_loadu_epi8(real, rows[r] + c)));
    }
  }
  const __m512i low = add_pairs(add_pairs(sums[0], sums[1]), add_pairs(sums[2], sums[3]));
  const __m512i high = add_pairs(add_pairs(sums[4], sums[5]), add_pairs(sums[6], sums[7]));
  const __m256 added = _mm512_cvtepi64_ps(add_pairs(low, high));
  const auto wanted = static_cast<__mmask8>((1u << count) - 1);
  const __m256 before = _mm256_maskz_loadu_ps(wanted, values);
  _mm256_mask_storeu_ps(values, wanted, _mm256_add_ps(before, added));
}

}  // namespace

void scan_bits_vpopcnt(const uint8_t* query, const MatrixView& base, float* values) {
  const auto* const data = static_cast<const uint8_t*>(base.data());
  for (int64_t first = 0; first < base.rows(); first += kRows) {
    const uint8_t* rows[kRows];
    for (int64_t r = 0; r < kRows; ++r) rows[r] = data + std::min(first + r, base.rows() - 1) * base.row_stride();
    for (int64_t r = kRows; r < 2 * kRows && first + r < base.rows(); ++r) {
      const uint8_t* const ahead = data + (first + r) * base.row_stride();
      for (int64_t byte = 0; byte < base.cols(); byte += kBytes) __builtin_prefetch(ahead + byte);
    }
    scan_group(query, rows, base.cols(), std::min<int64_t>(kRows, base.rows() - first), values + first);
  }
}

}  // namespace kith

#endif
