// Integer keys of rows of bytes at arbitrary addresses, by AVX-512 VNNI: bytes are widened to 16 bits, and products
// added in pairs, for eight rows at a time, so that their cache misses overlap. Cost: three operations per 32 bytes of
// a row, and three per sum.
#include "kernels/distance/byte_keys_cpu.hpp"
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/distance/add_each_avx2-inl.hpp"
#include "kernels/panels/x86_intrinsics.hpp"

#include <algorithm>

#define KITH_FOR_BYTE_KEYS KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

namespace kith {
namespace {

constexpr int kKeyRows = 8;
constexpr int64_t kKeyBytes = 32;
static_assert(kKeyBytes == 2 * kByteKeyColumns);

KITH_FOR_BYTE_KEYS inline __m512i load_key_words(const int8_t* from) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
KITH_FOR_BYTE_KEYS inline __m512i load_key_words(const int16_t* from) { return _mm512_loadu_si512(from); }
// Loads the last, incomplete group of sixteen, padded with zeros.
KITH_FOR_BYTE_KEYS inline __m512i load_last_key_words(const int8_t* from) {
  return _mm512_zextsi256_si512(_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
KITH_FOR_BYTE_KEYS inline __m512i load_last_key_words(const int16_t* from) {
  return _mm512_zextsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

template <ByteKeyKind kKind>
KITH_FOR_BYTE_KEYS inline __m512i add_key_words(__m512i sum, __m512i q, __m512i x) {
  if constexpr (kKind == ByteKeyKind::products) return _mm512_dpwssd_epi32(sum, q, x);
  const __m512i apart = _mm512_sub_epi16(q, x);
  return _mm512_dpwssd_epi32(sum, apart, apart);
}

// Lane i: the sum of sums[i].
KITH_FOR_BYTE_KEYS inline __m256i add_eight_keys(const __m512i (&sums)[kKeyRows]) {
  __m256i halves[kKeyRows];
#pragma GCC unroll 8
  for (int i = 0; i < kKeyRows; ++i) {
    halves[i] = _mm256_add_epi32(_mm512_castsi512_si256(sums[i]), _mm512_extracti64x4_epi64(sums[i], 1));
  }
  return add_each(halves);
}

template <ByteKeyKind kKind, typename Query>
KITH_FOR_BYTE_KEYS void keys_vnni(const Query* query, const ByteKeyRows& rows, const uint32_t* numbers, int64_t count,
                                  int32_t* keys) {
  const int64_t whole = rows.stride / kKeyBytes * kKeyBytes;
  for (int64_t first = 0; first < count; first += kKeyRows) {
    const int64_t some = std::min<int64_t>(kKeyRows, count - first);
    const int8_t* from[kKeyRows];
    for (int64_t r = 0; r < kKeyRows; ++r) {
      from[r] = rows.data + static_cast<int64_t>(numbers[first + std::min(r, some - 1)]) * rows.stride;
    }
    __m512i sums[kKeyRows];
#pragma GCC unroll 8
    for (auto& sum : sums) sum = _mm512_setzero_si512();
    for (int64_t c = 0; c < whole; c += kKeyBytes) {
      const __m512i q = load_key_words(query + c);
#pragma GCC unroll 8
      for (int r = 0; r < kKeyRows; ++r) sums[r] = add_key_words<kKind>(sums[r], q, load_key_words(from[r] + c));
    }
    if (whole < rows.stride) {
      const __m512i q = load_last_key_words(query + whole);
#pragma GCC unroll 8
      for (int r = 0; r < kKeyRows; ++r)
        sums[r] = add_key_words<kKind>(sums[r], q, load_last_key_words(from[r] + whole));
    }
    __m256i found = add_eight_keys(sums);
    if constexpr (kKind == ByteKeyKind::products) found = _mm256_sub_epi32(_mm256_setzero_si256(), found);
    _mm256_mask_storeu_epi32(keys + first, static_cast<__mmask8>((1U << some) - 1U), found);
  }
}

template <typename Query>
void keys_by_kind_vnni(ByteKeyKind kind, const Query* query, const ByteKeyRows& rows, const uint32_t* numbers,
                       int64_t count, int32_t* keys) {
  if (kind == ByteKeyKind::squares) return keys_vnni<ByteKeyKind::squares>(query, rows, numbers, count, keys);
  keys_vnni<ByteKeyKind::products>(query, rows, numbers, count, keys);
}

}  // namespace

void byte_keys_vnni(ByteKeyKind kind, const ByteKeyQuery& query, const ByteKeyRows& rows, const uint32_t* numbers,
                    int64_t count, int32_t* keys) {
  // Words need no widening.
  if (query.words != nullptr) return keys_by_kind_vnni(kind, query.words, rows, numbers, count, keys);
  keys_by_kind_vnni(kind, query.bytes, rows, numbers, count, keys);
}

}  // namespace kith

#endif
