// 8-bit codes looked up in AVX2's registers: a table of 256 bytes is sixteen pieces of sixteen. A shuffle takes a
// number's low four bits, and gives zero for one that is negative: with numbers less 16 t in piece t, all pieces up to
// a number's own are found, and each piece holds what differs from the one before it, so that they are xor-ed to the
// byte that is wanted. The numbers from 128 on are negative themselves, and go through the other eight pieces.
//
// Sums of 16 bits are of all bytes and of the odd ones, so that adding a part takes no shuffle.
// Cost: about 110 instructions for a part of 64 vectors.
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/panels/x86_intrinsics.hpp"

#define KITH_FOR_LOOKS KITH_FOR("avx2")
#include "kernels/lists/code_screen_looks-inl.hpp"

namespace kith {
namespace {

constexpr int kHalves = kColumnVectors / 32;
static_assert(kHalves == 2);

struct Avx2Sums {
  static constexpr int64_t kPartCycles = 40;  // of a part for all vectors

  __m256i all[kHalves];
  __m256i odd[kHalves];

  KITH_FOR_LOOKS Avx2Sums() {
    for (int h = 0; h < kHalves; ++h) all[h] = odd[h] = _mm256_setzero_si256();
  }

  // One part's bytes of all vectors.
  KITH_FOR_LOOKS void add_part(const uint8_t* column, const uint8_t* table) {
    constexpr int kPieces = 8;  // of each half of the numbers
    const __m256i sixteen = _mm256_set1_epi8(16);
    const __m256i sign = _mm256_set1_epi8(-128);
    __m256i numbers[kHalves][2];
    __m256i found[kHalves];
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      numbers[h][0] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(column + 32 * h));
      numbers[h][1] = _mm256_xor_si256(numbers[h][0], sign);
      found[h] = _mm256_setzero_si256();
    }
#pragma GCC unroll 2
    for (int upper = 0; upper < 2; ++upper) {
      __m256i before = _mm256_setzero_si256();
#pragma GCC unroll 8
      for (int t = 0; t < kPieces; ++t) {
        const auto* const from = reinterpret_cast<const __m128i*>(table + 128 * upper + 16 * t);
        const __m256i piece = _mm256_broadcastsi128_si256(_mm_loadu_si128(from));
        const __m256i differing = _mm256_xor_si256(piece, before);
        before = piece;
#pragma GCC unroll 2
        for (int h = 0; h < kHalves; ++h) {
          found[h] = _mm256_xor_si256(found[h], _mm256_shuffle_epi8(differing, numbers[h][upper]));
          numbers[h][upper] = _mm256_subs_epi8(numbers[h][upper], sixteen);  // negative ones stay so
        }
      }
    }
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      all[h] = _mm256_add_epi16(all[h], found[h]);
      odd[h] = _mm256_add_epi16(odd[h], _mm256_srli_epi16(found[h], 8));
    }
  }

  KITH_FOR_LOOKS __m256i even(int h) const { return _mm256_sub_epi16(all[h], _mm256_slli_epi16(odd[h], 8)); }

  // The sums of 32 vectors in their order, sixteen in each.
  KITH_FOR_LOOKS void in_order(int h, __m256i& first, __m256i& second) const {
    const __m256i low = _mm256_unpacklo_epi16(even(h), odd[h]);   // vectors 0 to 7 and 16 to 23
    const __m256i high = _mm256_unpackhi_epi16(even(h), odd[h]);  // 8 to 15 and 24 to 31
    first = _mm256_permute2x128_si256(low, high, 0x20);
    second = _mm256_permute2x128_si256(low, high, 0x31);
  }

  // A bit for each vector whose sum is below its limit.
  KITH_FOR_LOOKS uint64_t below(const uint16_t* limits) const {
    uint64_t bits = 0;
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      __m256i first;
      __m256i second;
      in_order(h, first, second);
      // Saturating difference: zero if the sum reaches the limit.
      const auto* const from = reinterpret_cast<const __m256i*>(limits + 32 * h);
      const __m256i zero = _mm256_setzero_si256();
      const __m256i not_first = _mm256_cmpeq_epi16(_mm256_subs_epu16(_mm256_loadu_si256(from), first), zero);
      const __m256i not_second = _mm256_cmpeq_epi16(_mm256_subs_epu16(_mm256_loadu_si256(from + 1), second), zero);
      const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(not_first, not_second), 0xD8);
      bits |= static_cast<uint64_t>(~static_cast<uint32_t>(_mm256_movemask_epi8(bytes))) << (32 * h);
    }
    return bits;
  }

  KITH_FOR_LOOKS void store(uint16_t* sums) const {
    for (int h = 0; h < kHalves; ++h) {
      __m256i first;
      __m256i second;
      in_order(h, first, second);
      auto* const to = reinterpret_cast<__m256i*>(sums + 32 * h);
      _mm256_storeu_si256(to, first);
      _mm256_storeu_si256(to + 1, second);
    }
  }
};

}  // namespace

uint64_t screen_byte_columns_avx2(int64_t parts, const uint8_t* block, const uint8_t* tables, const uint16_t* below,
                                  ScreenLook& look) {
  return screen_with_looks<Avx2Sums>(parts, block, tables, below, look);
}

void sum_byte_columns_avx2(int64_t parts, const uint8_t* block, const uint8_t* tables, uint16_t* sums) {
  sum_all_parts<Avx2Sums>(parts, block, tables, sums);
}

}  // namespace kith

#endif
