// Rows of bytes against a query's weights with AVX2: pairs of products in 16 bits, which cannot overflow, since weights
// have a bit less there (kNarrowWeight), then two of these in each 32-bit lane. Eight rows at a time. Cost: for 128
// columns about eight cycles a row.
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/distance/add_each_avx2-inl.hpp"
#include "kernels/panels/x86_intrinsics.hpp"

#define KITH_FOR_WEIGHTS KITH_FOR("avx2,fma")

#include "kernels/lists/weighted_bytes_x86-inl.hpp"

#include <cstring>

namespace kith {
namespace {

static_assert(2 * 255 * (kNarrowWeight / 128) <= INT16_MAX);

KITH_FOR_WEIGHTS inline __m128i load_lane(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}
KITH_FOR_WEIGHTS inline __m256i load_half(const void* from) {  // and zeros behind it
  return _mm256_zextsi128_si256(load_lane(from));
}

struct Avx2Set {
  static constexpr int kRows = 8;
  using Ints = __m256i;
  using Floats = __m256;

  KITH_FOR_WEIGHTS static Ints zero() { return _mm256_setzero_si256(); }
  KITH_FOR_WEIGHTS static Ints all(int32_t value) { return _mm256_set1_epi32(value); }
  KITH_FOR_WEIGHTS static Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  KITH_FOR_WEIGHTS static Ints times_128(Ints a) { return _mm256_slli_epi32(a, 7); }
  KITH_FOR_WEIGHTS static Ints add_products(Ints sum, Ints bytes, Ints weights) {
    return add(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(bytes, weights), _mm256_set1_epi16(1)));
  }
  // Lane i: the sum of sums[i].
  KITH_FOR_WEIGHTS static Ints add_each(const Ints (&sums)[kRows]) { return kith::add_each(sums); }
  // Rows that are contiguous, several in a register.
  static bool takes_together(int64_t row_bytes) { return row_bytes == 16; }
  KITH_FOR_WEIGHTS static Ints sum_together(const uint8_t* rows, int64_t, const int8_t* weights) {
    const Ints w = _mm256_broadcastsi128_si256(load_lane(weights));
    Ints halves[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const auto* const two = reinterpret_cast<const __m256i*>(rows + 32 * i);
      halves[i] = add_products(zero(), _mm256_loadu_si256(two), w);
    }
    return add_halves(halves);
  }
  KITH_FOR_WEIGHTS static Ints load_bytes(const int8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  // Sixteen or 32.
  KITH_FOR_WEIGHTS static Ints load_some_bytes(const int8_t* from, int64_t count) {
    return count > 16 ? load_bytes(from) : load_half(from);
  }

  static constexpr int kSixLanes = 2;
  KITH_FOR_WEIGHTS static Ints high_products(Ints a, Ints b) { return _mm256_mulhi_epu16(a, b); }
  KITH_FOR_WEIGHTS static Ints low_products(Ints a, Ints b) { return _mm256_mullo_epi16(a, b); }
  // The low six bits of each word's bytes, those of the low ones from `low`.
  KITH_FOR_WEIGHTS static Ints six_bits_of(Ints low, Ints high) {
    return _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi16(0x003F)),
                           _mm256_and_si256(high, _mm256_set1_epi16(0x3F00)));
  }
  // Two words of every three bytes: the first and the second, the second and the third.
  KITH_FOR_WEIGHTS static Ints load_words(const uint8_t* from) {  // of 24 bytes; the second half has them at its end
    const __m256i both = _mm256_inserti128_si256(load_half(from), load_lane(from + 8), 1);
    return _mm256_shuffle_epi8(both, _mm256_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11,  //
                                                      4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15));
  }
  KITH_FOR_WEIGHTS static Ints load_some_words(const uint8_t* from, int64_t) {  // of twelve
    int32_t last;
    std::memcpy(&last, from + 8, 4);
    const __m128i all = _mm_insert_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), last, 2);
    const __m128i places = _mm_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11);
    return _mm256_zextsi128_si256(_mm_shuffle_epi8(all, places));
  }

  KITH_FOR_WEIGHTS static Floats all(float value) { return _mm256_set1_ps(value); }
  KITH_FOR_WEIGHTS static Floats to_floats(Ints a) { return _mm256_cvtepi32_ps(a); }
  KITH_FOR_WEIGHTS static Floats add_product(Floats sum, Floats a, Floats b) { return _mm256_fmadd_ps(a, b, sum); }
  KITH_FOR_WEIGHTS static Floats subtract_product(Floats sum, Floats a, Floats b) {
    return _mm256_fnmadd_ps(a, b, sum);
  }
  KITH_FOR_WEIGHTS static Floats load_floats(const float* from, int64_t count) {
    if (count == kRows) return _mm256_loadu_ps(from);
    const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(from, _mm256_cmpgt_epi32(all(static_cast<int32_t>(count)), places));
  }
  KITH_FOR_WEIGHTS static uint32_t above(Floats a, Floats b) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)));
  }
  KITH_FOR_WEIGHTS static void put_some(Floats a, uint32_t first, uint32_t chosen, float* to, uint32_t* numbers) {
    alignas(32) float values[kRows];
    _mm256_store_ps(values, a);
    for (; chosen != 0; chosen &= chosen - 1) {
      const int r = std::countr_zero(chosen);
      *to++ = values[r];
      *numbers++ = first + static_cast<uint32_t>(r);
    }
  }
};

struct Avx2Bytes {
  static constexpr int kBits = 8;
  static constexpr int64_t kStep = 32;
  static constexpr int64_t kUnit = 16;
  KITH_FOR_WEIGHTS static __m256i load(const uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  KITH_FOR_WEIGHTS static __m256i load_some(const uint8_t* from, int64_t) { return load_half(from); }
};

// The low halves of sixteen bytes, then their high ones.
struct Avx2Nibbles {
  static constexpr int kBits = 4;
  static constexpr int64_t kStep = 16;
  static constexpr int64_t kUnit = 16;
  KITH_FOR_WEIGHTS static __m256i load(const uint8_t* from) {
    const __m128i both = load_lane(from);
    const __m256i apart = _mm256_inserti128_si256(_mm256_castsi128_si256(both), _mm_srli_epi16(both, 4), 1);
    return _mm256_and_si256(apart, _mm256_set1_epi8(15));
  }
  KITH_FOR_WEIGHTS static __m256i load_some(const uint8_t* from, int64_t) { return load(from); }
};

}  // namespace

void scan_weighted_bytes_avx2(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  with_packing<Avx2Set, Avx2Bytes, Avx2Nibbles>(rows.bits, [&]<typename Packing>(Packing) {
    scan_all_queries<Avx2Set, Packing>(rows, first, queries, query_count);
  });
}

}  // namespace kith

#endif
