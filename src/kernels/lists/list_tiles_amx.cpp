// Products of lists on AMX's tiles (list_tiles.hpp).
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/lists/gather_words-inl.hpp"
#include "kernels/lists/list_tiles.hpp"
#include "kernels/panels/panel_format.hpp"
#include "kernels/panels/tile_setup_amx.hpp"

#include <algorithm>
#include <cstring>

#define KITH_FOR_AMX KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512cd,fma,bmi2,popcnt,amx-tile,amx-bf16")

namespace kith {
namespace {

constexpr int kLanes = 16;

// The nearest bf16, ties to even, in the upper halves.
KITH_FOR_AMX inline __m512i bf16_above(__m512 values) {
  const __m512i bits = _mm512_castps_si512(values);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  return _mm512_and_si512(rounded, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u)));
}

KITH_FOR_AMX inline __mmask16 first_lanes(int64_t count) {
  if (count <= 0) return 0;
  return count >= kLanes ? static_cast<__mmask16>(0xFFFF) : static_cast<__mmask16>((1u << count) - 1u);
}

// Four words of sixteen rows, from `from` on, to four rows of a panel.
KITH_FOR_AMX inline void transpose_words(const uint32_t* from, int64_t stride, int64_t count, uint32_t* to,
                                         int64_t words) {
  __m512i rows[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {  // lane L has row 4 L + j
    const auto row = [&](int i) KITH_FOR_AMX {
      if (i >= count) return _mm_setzero_si128();
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * stride));
    };
    __m512i all = _mm512_castsi128_si512(row(j));
    all = _mm512_inserti32x4(all, row(4 + j), 1);
    all = _mm512_inserti32x4(all, row(8 + j), 2);
    rows[j] = _mm512_inserti32x4(all, row(12 + j), 3);
  }
  const __m512i low01 = _mm512_unpacklo_epi32(rows[0], rows[1]);
  const __m512i high01 = _mm512_unpackhi_epi32(rows[0], rows[1]);
  const __m512i low23 = _mm512_unpacklo_epi32(rows[2], rows[3]);
  const __m512i high23 = _mm512_unpackhi_epi32(rows[2], rows[3]);
  _mm512_storeu_si512(to, _mm512_unpacklo_epi64(low01, low23));
  if (words > 1) _mm512_storeu_si512(to + kTileRows, _mm512_unpackhi_epi64(low01, low23));
  if (words > 2) _mm512_storeu_si512(to + 2 * kTileRows, _mm512_unpacklo_epi64(high01, high23));
  if (words > 3) _mm512_storeu_si512(to + 3 * kTileRows, _mm512_unpackhi_epi64(high01, high23));
}

}  // namespace

int64_t tile_words(int64_t cols) { return units_per_part(PanelFormat::bf16, cols); }

KITH_FOR_AMX RoundedSums round_to_tile_words(const float* vector, const float* origin, float scale, int64_t cols,
                                             uint32_t* words) {
  const int64_t all = tile_words(cols);
  // The upper halves of 32 lanes, in order.
  alignas(64) uint16_t upper[32];
  for (int i = 0; i < 32; ++i) upper[i] = static_cast<uint16_t>(2 * i + 1);
  const __m512i order = _mm512_load_si512(upper);
  const __m512 factor = _mm512_set1_ps(scale);
  __m512 squares = _mm512_setzero_ps();
  __m512 errors = _mm512_setzero_ps();
  for (int64_t word = 0; word < all; word += kLanes) {
    __m512i rounded[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const int64_t c = 2 * word + half * kLanes;
      const __mmask16 lanes = first_lanes(cols - c);
      __m512 x = _mm512_maskz_loadu_ps(lanes, vector + (lanes == 0 ? 0 : c));
      if (origin != nullptr) x = _mm512_sub_ps(x, _mm512_maskz_loadu_ps(lanes, origin + (lanes == 0 ? 0 : c)));
      const __m512i near = bf16_above(x);
      const __m512 error = _mm512_sub_ps(x, _mm512_castsi512_ps(near));
      squares = _mm512_fmadd_ps(x, x, squares);
      errors = _mm512_fmadd_ps(error, error, errors);
      rounded[half] = _mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(near), factor));
    }
    const __m512i packed = _mm512_permutex2var_epi16(rounded[0], order, rounded[1]);
    _mm512_mask_storeu_epi32(words + word, first_lanes(all - word), packed);
  }
  return {_mm512_reduce_add_ps(squares), _mm512_reduce_add_ps(errors)};
}

KITH_FOR_AMX void place_tile_rows(const uint32_t* vectors, int64_t count, int64_t words, uint32_t* panel) {
  for (int half = 0; half < 2; ++half) {
    const uint32_t* const from = vectors + half * kLanes * words;
    const int64_t here = count - half * kLanes;
    uint32_t* const to = panel + half * kLanes;
    int64_t word = 0;
    if (here >= kLanes) {
      for (; word + 4 <= words; word += 4) transpose_words(from + word, words, kLanes, to + word * kTileRows, 4);
    }
    for (; word < words; ++word) {
      for (int64_t i = 0; i < kLanes; ++i) to[word * kTileRows + i] = i < here ? from[i * words + word] : 0u;
    }
  }
}

void place_tile_queries(const uint32_t* vectors, int64_t count, int64_t words, uint32_t* panel) {
  std::copy_n(vectors, count * words, panel);
  std::fill_n(panel + count * words, (kTileQueries - count) * words, 0u);
}

KITH_FOR_AMX void gather_tile_words(const CodeFormat& format, const RoundedWords& rounded, const uint8_t* codes,
                                    int64_t count, int64_t words, uint32_t* vectors, float* squares) {
  gather_words(format, rounded, codes, count, words, vectors, squares);
}

KITH_FOR_AMX void scan_list_tiles(const TileScan& scan, ListHits& hits) {
  const int64_t words = tile_words(scan.cols);
  const int64_t step = columns_per_step(PanelFormat::bf16, scan.cols) / 2;
  const TileSetup setup(step);
  alignas(64) float sums[kTileRows][kTileRows];
  constexpr int64_t kStride = 4 * kTileRows;
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const bool two = scan.query_count > kLanes;
  for (int64_t first = 0; first < scan.rows; first += kTileRows) {
    const float* const terms = scan.terms + first;
    _tile_loadd(0, terms, 0);
    _tile_loadd(1, terms + kLanes, 0);
    if (two) {
      _tile_loadd(2, terms, 0);
      _tile_loadd(3, terms + kLanes, 0);
    }
    const uint32_t* queries = scan.queries;
    const uint32_t* rows = scan.panels + first * words;
    for (int64_t word = 0; word < words; word += step, queries += step, rows += step * kTileRows) {
      _tile_loadd(4, queries, 4 * words);
      _tile_loadd(6, rows, kStride);
      _tile_loadd(7, rows + kLanes, kStride);
      if (two) _tile_loadd(5, queries + kLanes * words, 4 * words);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      if (two) {
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
    _tile_stored(0, sums[0], kStride);
    _tile_stored(1, sums[0] + kLanes, kStride);
    if (two) {
      _tile_stored(2, sums[kLanes], kStride);
      _tile_stored(3, sums[kLanes] + kLanes, kStride);
    }
    const __mmask16 mask0 = first_lanes(scan.rows - first);
    const __mmask16 mask1 = first_lanes(scan.rows - first - kLanes);
    for (int64_t q = 0; q < scan.query_count; ++q) {
      const __m512 limit = _mm512_set1_ps(scan.limits[q]);
      const __m512 value0 = _mm512_load_ps(sums[q]);
      const __m512 value1 = _mm512_load_ps(sums[q] + kLanes);
      const __mmask16 pass0 = _mm512_mask_cmp_ps_mask(mask0, value0, limit, _CMP_NGT_UQ);
      const __mmask16 pass1 = _mm512_mask_cmp_ps_mask(mask1, value1, limit, _CMP_NGT_UQ);
      if (_kortestz_mask16_u8(pass0, pass1) != 0) continue;
      int64_t count = hits.counts[q];
      float* const values = hits.values + q * hits.stride;
      uint32_t* const numbers = hits.rows + q * hits.stride;
      const __m512i row0 = _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(first)));
      _mm512_storeu_ps(values + count, _mm512_maskz_compress_ps(pass0, value0));
      _mm512_storeu_si512(numbers + count, _mm512_maskz_compress_epi32(pass0, row0));
      count += _mm_popcnt_u32(pass0);
      const __m512i row1 = _mm512_add_epi32(row0, _mm512_set1_epi32(kLanes));
      _mm512_storeu_ps(values + count, _mm512_maskz_compress_ps(pass1, value1));
      _mm512_storeu_si512(numbers + count, _mm512_maskz_compress_epi32(pass1, row1));
      hits.counts[q] = count + _mm_popcnt_u32(pass1);
    }
  }
}

}  // namespace kith

#endif
