// Integer keys of rows of four bits a column, with AVX-512's VNNI, which multiplies bytes without a sign by bytes with
// one: half bytes are taken as u = c + 8, from 0 to 15, eight rows at a time.
//
//   squares    sum (b - 8 (u - 8))^2 = sum (b^2 + 128 b + 4096) - 16 sum u b + 64 sum u (u - 16)
//   products   -(sum 8 b (u - 8))    = 64 sum b - 8 sum u b
//
// The first sums are the query's alone, and u - 16 is u with its upper bits set. Cost: eleven operations for 128
// columns of a row, and three for a sum.
#include "kernels/distance/nibble_keys_cpu.hpp"
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/distance/add_each_avx2-inl.hpp"
#include "kernels/panels/x86_intrinsics.hpp"

#include <algorithm>

#define KITH_FOR_NIBBLE_KEYS KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

namespace kith {
namespace {

constexpr int kNibbleVnniRows = 8;
constexpr int64_t kNibbleVnniBytes = 64;
constexpr int64_t kNibbleVnniColumns = 2 * kNibbleVnniBytes;

// The query's bytes for the lower and the upper halves of 64 bytes of a row: every other 16 columns.
struct NibbleQueryVnni {
  __m512i low;
  __m512i high;
};

KITH_FOR_NIBBLE_KEYS inline NibbleQueryVnni nibble_query(__m512i first, __m512i second) {
  return {_mm512_shuffle_i64x2(first, second, 0x88), _mm512_shuffle_i64x2(first, second, 0xDD)};
}

template <ByteKeyKind kKind>
KITH_FOR_NIBBLE_KEYS inline void add_nibbles_vnni(__m512i row, const NibbleQueryVnni& query, __m512i& products,
                                                  __m512i& squares) {
  const __m512i lower = _mm512_set1_epi8(0x0F);
  const __m512i upper = _mm512_set1_epi8(static_cast<char>(0xF0));
  const __m512i moved = _mm512_xor_si512(row, _mm512_set1_epi8(static_cast<char>(0x88)));
  const __m512i low = _mm512_and_si512(moved, lower);
  const __m512i high = _mm512_and_si512(_mm512_srli_epi16(moved, 4), lower);
  products = _mm512_dpbusd_epi32(products, low, query.low);
  products = _mm512_dpbusd_epi32(products, high, query.high);
  if constexpr (kKind == ByteKeyKind::squares) {
    squares = _mm512_dpbusd_epi32(squares, low, _mm512_or_si512(low, upper));
    squares = _mm512_dpbusd_epi32(squares, high, _mm512_or_si512(high, upper));
  }
}

// The part of a key that depends on the query alone, over columns padded to whole vectors.
template <ByteKeyKind kKind>
KITH_FOR_NIBBLE_KEYS inline int32_t nibble_query_part(const int8_t* query, int64_t columns) {
  __m512i sums = _mm512_setzero_si512();
  __m512i squares = _mm512_setzero_si512();
  for (int64_t c = 0; c < columns; c += kNibbleColumns) {
    const __m512i words = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(query + c)));
    sums = _mm512_dpwssd_epi32(sums, words, _mm512_set1_epi16(1));
    squares = _mm512_dpwssd_epi32(squares, words, words);
  }
  const int32_t sum = _mm512_reduce_add_epi32(sums);
  if constexpr (kKind == ByteKeyKind::products) return 64 * sum;
  const int64_t counted = (columns + kNibbleVnniColumns - 1) / kNibbleVnniColumns * kNibbleVnniColumns;
  return _mm512_reduce_add_epi32(squares) + 128 * sum + static_cast<int32_t>(4096 * counted);
}

template <ByteKeyKind kKind>
KITH_FOR_NIBBLE_KEYS void nibble_keys_by_vnni(const int8_t* query, const ByteKeyRows& rows, const uint32_t* numbers,
                                              int64_t count, int32_t* keys) {
  const int64_t whole = rows.stride / kNibbleVnniBytes * kNibbleVnniBytes;
  // Masks of the last vector, in words of eight bytes. A query has twice as many.
  const auto rest = static_cast<unsigned>((rows.stride - whole) / 8);
  const auto row_mask = static_cast<__mmask8>((1U << rest) - 1U);
  const auto query_mask = static_cast<uint32_t>((1U << (2 * rest)) - 1U);
  const __m256i own = _mm256_set1_epi32(nibble_query_part<kKind>(query, 2 * rows.stride));
  for (int64_t first = 0; first < count; first += kNibbleVnniRows) {
    const int64_t some = std::min<int64_t>(kNibbleVnniRows, count - first);
    const int8_t* from[kNibbleVnniRows];
    for (int64_t r = 0; r < kNibbleVnniRows; ++r) {
      from[r] = rows.data + static_cast<int64_t>(numbers[first + std::min(r, some - 1)]) * rows.stride;
    }
    __m512i products[kNibbleVnniRows];
    __m512i squares[kNibbleVnniRows];
#pragma GCC unroll 8
    for (int r = 0; r < kNibbleVnniRows; ++r) products[r] = squares[r] = _mm512_setzero_si512();
    for (int64_t b = 0; b < whole; b += kNibbleVnniBytes) {
      const NibbleQueryVnni part =
          nibble_query(_mm512_loadu_si512(query + 2 * b), _mm512_loadu_si512(query + 2 * b + kNibbleVnniBytes));
#pragma GCC unroll 8
      for (int r = 0; r < kNibbleVnniRows; ++r) {
        add_nibbles_vnni<kKind>(_mm512_loadu_si512(from[r] + b), part, products[r], squares[r]);
      }
    }
    if (rest > 0) {
      const NibbleQueryVnni part = nibble_query(
          _mm512_maskz_loadu_epi64(static_cast<__mmask8>(query_mask & 0xFFU), query + 2 * whole),
          _mm512_maskz_loadu_epi64(static_cast<__mmask8>(query_mask >> 8), query + 2 * whole + kNibbleVnniBytes));
#pragma GCC unroll 8
      for (int r = 0; r < kNibbleVnniRows; ++r) {
        add_nibbles_vnni<kKind>(_mm512_maskz_loadu_epi64(row_mask, from[r] + whole), part, products[r], squares[r]);
      }
    }
    __m256i halves[kNibbleVnniRows];
#pragma GCC unroll 8
    for (int r = 0; r < kNibbleVnniRows; ++r) {
      const __m512i sum = kKind == ByteKeyKind::squares
                              ? _mm512_sub_epi32(_mm512_slli_epi32(squares[r], 6), _mm512_slli_epi32(products[r], 4))
                              : _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(products[r], 3));
      halves[r] = _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
    }
    const __m256i found = _mm256_add_epi32(add_each(halves), own);
    _mm256_mask_storeu_epi32(keys + first, static_cast<__mmask8>((1U << some) - 1U), found);
  }
}

}  // namespace

void nibble_keys_vnni(ByteKeyKind kind, const int8_t* query, const ByteKeyRows& rows, const uint32_t* numbers,
                      int64_t count, int32_t* keys) {
  if (kind == ByteKeyKind::squares) {
    return nibble_keys_by_vnni<ByteKeyKind::squares>(query, rows, numbers, count, keys);
  }
  nibble_keys_by_vnni<ByteKeyKind::products>(query, rows, numbers, count, keys);
}

}  // namespace kith

#endif
