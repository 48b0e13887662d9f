// Rows of bytes against a query's weights with AVX-512's VNNI: 64 products of a byte as it is and a weight with its
// sign to each instruction, sixteen rows at a time. Cost: for 128 columns about five cycles a row.
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/distance/add_each_avx512-inl.hpp"

#define KITH_FOR_WEIGHTS KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

#include "kernels/lists/weighted_bytes_x86-inl.hpp"

namespace kith {
namespace {

KITH_FOR_WEIGHTS inline __mmask64 first_bytes(int64_t count) { return ~uint64_t{0} >> (64 - count); }

struct VnniSet {
  static constexpr int kRows = kSumsTogether;
  using Ints = __m512i;
  using Floats = __m512;

  KITH_FOR_WEIGHTS static Ints zero() { return _mm512_setzero_si512(); }
  KITH_FOR_WEIGHTS static Ints all(int32_t value) { return _mm512_set1_epi32(value); }
  KITH_FOR_WEIGHTS static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  KITH_FOR_WEIGHTS static Ints times_128(Ints a) { return _mm512_slli_epi32(a, 7); }
  KITH_FOR_WEIGHTS static Ints add_products(Ints sum, Ints bytes, Ints weights) {
    return _mm512_dpbusd_epi32(sum, bytes, weights);
  }
  KITH_FOR_WEIGHTS static Ints add_each(const Ints (&sums)[kRows]) { return kith::add_each(sums); }
  // Rows that lie one after the other, several in a register.
  static bool takes_together(int64_t row_bytes) { return row_bytes == 16 || row_bytes == 32; }
  KITH_FOR_WEIGHTS static Ints sum_together(const uint8_t* rows, int64_t row_bytes, const int8_t* weights) {
    Ints quarters[4];
    if (row_bytes == 16) {
      const Ints w = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weights)));
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) quarters[i] = add_products(zero(), _mm512_loadu_si512(rows + 64 * i), w);
    } else {
      const Ints w = _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights)));
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const Ints first = add_products(zero(), _mm512_loadu_si512(rows + 128 * i), w);
        const Ints second = add_products(zero(), _mm512_loadu_si512(rows + 128 * i + 64), w);
        quarters[i] = add_halves(first, second);
      }
    }
    return add_quarters(quarters);
  }
  KITH_FOR_WEIGHTS static Ints load_bytes(const int8_t* from) { return _mm512_loadu_si512(from); }
  KITH_FOR_WEIGHTS static Ints load_some_bytes(const int8_t* from, int64_t count) {
    return _mm512_maskz_loadu_epi8(first_bytes(count), from);
  }

  KITH_FOR_WEIGHTS static Floats all(float value) { return _mm512_set1_ps(value); }
  KITH_FOR_WEIGHTS static Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
  KITH_FOR_WEIGHTS static Floats add_product(Floats sum, Floats a, Floats b) { return _mm512_fmadd_ps(a, b, sum); }
  KITH_FOR_WEIGHTS static Floats subtract_product(Floats sum, Floats a, Floats b) {
    return _mm512_fnmadd_ps(a, b, sum);
  }
  KITH_FOR_WEIGHTS static Floats load_floats(const float* from, int64_t count) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from);
  }
  KITH_FOR_WEIGHTS static uint32_t above(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
  KITH_FOR_WEIGHTS static void store(Floats a, float* to) { _mm512_store_ps(to, a); }
};

struct VnniBytes {
  static constexpr int64_t kStep = 64;
  static constexpr int64_t kValues = 1;  // of a byte
  KITH_FOR_WEIGHTS static __m512i load(const uint8_t* from) { return _mm512_loadu_si512(from); }
  // Zeros behind the first `count` bytes, which are not read.
  KITH_FOR_WEIGHTS static __m512i load_some(const uint8_t* from, int64_t count) {
    return _mm512_maskz_loadu_epi8(first_bytes(count), from);
  }
};

// The low halves of sixteen bytes, then their high ones.
struct VnniNibbles {
  static constexpr int64_t kStep = 32;
  static constexpr int64_t kValues = 2;
  KITH_FOR_WEIGHTS static __m512i spread(__m256i both) {
    constexpr int64_t kFour = 0x0004000400040004;
    const __m512i twice =
        _mm512_permutexvar_epi64(_mm512_set_epi64(3, 2, 3, 2, 1, 0, 1, 0), _mm512_castsi256_si512(both));
    const __m512i moved = _mm512_srlv_epi16(twice, _mm512_set_epi64(kFour, kFour, 0, 0, kFour, kFour, 0, 0));
    return _mm512_and_si512(moved, _mm512_set1_epi8(15));
  }
  KITH_FOR_WEIGHTS static __m512i load(const uint8_t* from) {
    return spread(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  KITH_FOR_WEIGHTS static __m512i load_some(const uint8_t* from, int64_t count) {
    return spread(_mm256_maskz_loadu_epi8(static_cast<__mmask32>(first_bytes(count)), from));
  }
};

}  // namespace

void scan_weighted_bytes_vnni(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  scan_all_queries<VnniSet, VnniBytes, VnniNibbles>(rows, first, queries, query_count);
}

}  // namespace kith

#endif
