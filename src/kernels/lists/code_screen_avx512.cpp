// 8-bit codes looked up in AVX-512's registers without VBMI: words are permuted where bytes are not. A table of 256
// bytes is four registers of 32 words; a code without its lowest bit is the number of a word, which two permutations by
// two registers each and a blend find, and the lowest bit says which of its bytes is meant.
//
// Cost: about 15 cycles for a part of 64 vectors, where AVX2 takes 40.
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/panels/x86_intrinsics.hpp"

#define KITH_FOR_LOOKS KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq")
#include "kernels/lists/code_screen_looks-inl.hpp"

namespace kith {
namespace {

static_assert(kColumnVectors == 64);

struct Avx512Sums {
  static constexpr int64_t kPartCycles = 15;  // of a part for all vectors

  __m512i even;
  __m512i odd;

  KITH_FOR_LOOKS Avx512Sums() : even(_mm512_setzero_si512()), odd(_mm512_setzero_si512()) {}

  // One part's bytes of all vectors.
  KITH_FOR_LOOKS void add_part(const uint8_t* column, const uint8_t* table) {
    const __m512i codes = _mm512_loadu_si512(column);
    const __m512i words[4] = {_mm512_loadu_si512(table), _mm512_loadu_si512(table + 64),
                              _mm512_loadu_si512(table + 128), _mm512_loadu_si512(table + 192)};
    const __m512i of_even = pairs(words, _mm512_srli_epi16(codes, 1), _mm512_test_epi16_mask(codes, word(0x80)));
    const __m512i of_odd = pairs(words, _mm512_srli_epi16(codes, 9), _mm512_movepi16_mask(codes));
    // A product with 1 for one byte of a pair and 0 for the other.
    const __m512i first = word(0x0001);
    const __m512i second = word(0x0100);
    const __m512i wanted_even = _mm512_mask_blend_epi16(_mm512_test_epi16_mask(codes, word(0x01)), first, second);
    const __m512i wanted_odd = _mm512_mask_blend_epi16(_mm512_test_epi16_mask(codes, word(0x100)), first, second);
    even = _mm512_add_epi16(even, _mm512_maddubs_epi16(of_even, wanted_even));
    odd = _mm512_add_epi16(odd, _mm512_maddubs_epi16(of_odd, wanted_odd));
  }

  // A bit for each vector whose sum is below its limit.
  KITH_FOR_LOOKS uint64_t below(const uint16_t* limits) const {
    const Ordered sums = in_order();
    const uint64_t first = _mm512_cmplt_epu16_mask(sums.first, _mm512_loadu_si512(limits));
    const uint64_t second = _mm512_cmplt_epu16_mask(sums.second, _mm512_loadu_si512(limits + 32));
    return second << 32 | first;
  }

  KITH_FOR_LOOKS void store(uint16_t* sums) const {
    const Ordered found = in_order();
    _mm512_storeu_si512(sums, found.first);
    _mm512_storeu_si512(sums + 32, found.second);
  }

 private:
  struct Ordered {  // the vectors' sums, 32 in each
    __m512i first;
    __m512i second;
  };

  KITH_FOR_LOOKS static __m512i word(int value) { return _mm512_set1_epi16(static_cast<int16_t>(value)); }

  // The words with these numbers, whose seventh bits are `upper`.
  KITH_FOR_LOOKS static __m512i pairs(const __m512i (&words)[4], __m512i numbers, __mmask32 upper) {
    return _mm512_mask_blend_epi16(upper, _mm512_permutex2var_epi16(words[0], numbers, words[1]),
                                   _mm512_permutex2var_epi16(words[2], numbers, words[3]));
  }

  // Quarter i of the unpacked: the vectors from 16 i on, and those from 16 i + 8 on.
  KITH_FOR_LOOKS Ordered in_order() const {
    const __m512i low = _mm512_unpacklo_epi16(even, odd);
    const __m512i high = _mm512_unpackhi_epi16(even, odd);
    return {_mm512_permutex2var_epi64(low, _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), high),
            _mm512_permutex2var_epi64(low, _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4), high)};
  }
};

}  // namespace

uint64_t screen_byte_columns_avx512(int64_t parts, const uint8_t* block, const uint8_t* tables, const uint16_t* below,
                                    ScreenLook& look) {
  return screen_with_looks<Avx512Sums>(parts, block, tables, below, look);
}

void sum_byte_columns_avx512(int64_t parts, const uint8_t* block, const uint8_t* tables, uint16_t* sums) {
  sum_all_parts<Avx512Sums>(parts, block, tables, sums);
}

}  // namespace kith

#endif
