// The keys of packed rows by AVX-512 VNNI: one operation for four columns of sixteen rows. Four of them take turns, so that
// one's sum does not wait for another's.
#include "kernels/distance/packed_byte_rows.hpp"
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/panels/x86_intrinsics.hpp"

#include <cstring>

#define KITH_FOR_PACKED_KEYS KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

namespace kith {
namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kTogether = PackedByteRows::kTogether;
static_assert(kTogether == 4 * kLanes);
constexpr int64_t kAhead = 8 * kTogether;  // words on their way

KITH_FOR_PACKED_KEYS inline int32_t squared_norm(const int8_t* query, int64_t stride) {
  __m256i sum = _mm256_setzero_si256();
  for (int64_t c = 0; c < stride; c += kByteKeyColumns) {
    const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(query + c)));
    sum = _mm256_dpwssd_epi32(sum, words, words);
  }
  return _mm512_reduce_add_epi32(_mm512_zextsi256_si512(sum));
}

// Four columns of the query, with 128 added to each, in every lane.
KITH_FOR_PACKED_KEYS inline __m512i query_word(const int8_t* query, int64_t unit) {
  int32_t word;
  std::memcpy(&word, query + 4 * unit, 4);
  return _mm512_xor_si512(_mm512_set1_epi32(word), _mm512_set1_epi8(-128));
}

KITH_FOR_PACKED_KEYS inline void store_keys(ByteKeyKind kind, __m512i products, const int32_t* terms, __m512i norm,
                                            int32_t* keys) {
  const __m512i scaled = kind == ByteKeyKind::squares ? _mm512_slli_epi32(products, 1) : products;
  _mm512_storeu_si512(keys, _mm512_sub_epi32(_mm512_add_epi32(norm, _mm512_loadu_si512(terms)), scaled));
}

}  // namespace

KITH_FOR_PACKED_KEYS void packed_keys_vnni(ByteKeyKind kind, const int8_t* query, int64_t stride, const int32_t* words,
                                           const int32_t* terms, int64_t count, int32_t* keys) {
  const int64_t units = stride / 4;
  const __m512i norm = _mm512_set1_epi32(kind == ByteKeyKind::squares ? squared_norm(query, stride) : 0);
  for (int64_t at = 0; at < count; at += kTogether) {
    __m512i a = _mm512_setzero_si512();
    __m512i b = a;
    __m512i c = a;
    __m512i d = a;
    for (int64_t u = 0; u < units; ++u, words += kTogether) {
      for (int64_t line = 0; line < kTogether; line += kLanes) __builtin_prefetch(words + kAhead + line);
      const __m512i q = query_word(query, u);
      a = _mm512_dpbusd_epi32(a, q, _mm512_loadu_si512(words));
      b = _mm512_dpbusd_epi32(b, q, _mm512_loadu_si512(words + kLanes));
      c = _mm512_dpbusd_epi32(c, q, _mm512_loadu_si512(words + 2 * kLanes));
      d = _mm512_dpbusd_epi32(d, q, _mm512_loadu_si512(words + 3 * kLanes));
    }
    store_keys(kind, a, terms + at, norm, keys + at);
    store_keys(kind, b, terms + at + kLanes, norm, keys + at + kLanes);
    store_keys(kind, c, terms + at + 2 * kLanes, norm, keys + at + 2 * kLanes);
    store_keys(kind, d, terms + at + 3 * kLanes, norm, keys + at + 3 * kLanes);
  }
}

}  // namespace kith

#endif
