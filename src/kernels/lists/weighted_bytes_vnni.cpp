// Rows of bytes against a query's weights with AVX-512's VNNI: 64 products of a byte as it is and a weight with its
// sign to each instruction, sixteen rows at a time. Cost: for 128 columns about five cycles a row.
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/distance/add_each_avx512-inl.hpp"

#define KITH_FOR_WEIGHTS KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

#include "kernels/lists/weighted_bytes_x86-inl.hpp"

#include <cstddef>
#include <cstring>
#include <new>

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

  static constexpr int kSixLanes = 4;
  KITH_FOR_WEIGHTS static Ints high_products(Ints a, Ints b) { return _mm512_mulhi_epu16(a, b); }
  KITH_FOR_WEIGHTS static Ints low_products(Ints a, Ints b) { return _mm512_mullo_epi16(a, b); }
  // The low six bits of each word's bytes, those of the low ones from `low`.
  KITH_FOR_WEIGHTS static Ints six_bits_of(Ints low, Ints high) {
    constexpr int kLowOrHigh = 0xCA;  // where the first operand has ones: the second one
    const Ints both = _mm512_ternarylogic_epi32(_mm512_set1_epi16(0x00FF), low, high, kLowOrHigh);
    return _mm512_and_si512(both, _mm512_set1_epi8(0x3F));
  }
  // Two words of every three bytes: the first and the second, the second and the third.
  KITH_FOR_WEIGHTS static Ints words_of(Ints bytes) {
    const Ints apart =
        _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11), bytes);
    return _mm512_shuffle_epi8(
        apart, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11)));
  }
  KITH_FOR_WEIGHTS static Ints load_words(const uint8_t* from) {
    constexpr __mmask16 kTwelve = 0xFFF;  // numbers of four bytes
    return words_of(_mm512_maskz_loadu_epi32(kTwelve, from));
  }
  KITH_FOR_WEIGHTS static Ints load_some_words(const uint8_t* from, int64_t count) {
    return words_of(_mm512_maskz_loadu_epi8(first_bytes(count), from));
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
  KITH_FOR_WEIGHTS static void put_some(Floats a, uint32_t first, uint32_t chosen, float* to, uint32_t* numbers) {
    const auto lanes = static_cast<__mmask16>(chosen);
    const Ints own =
        add(all(static_cast<int32_t>(first)), _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    _mm512_storeu_ps(to, _mm512_maskz_compress_ps(lanes, a));
    _mm512_storeu_si512(numbers, _mm512_maskz_compress_epi32(lanes, own));
  }
};

struct VnniBytes {
  static constexpr int kBits = 8;
  static constexpr int64_t kStep = 64;
  static constexpr int64_t kUnit = 16;
  KITH_FOR_WEIGHTS static __m512i load(const uint8_t* from) { return _mm512_loadu_si512(from); }
  // Zeros behind the first `count` bytes, which are not read.
  KITH_FOR_WEIGHTS static __m512i load_some(const uint8_t* from, int64_t count) {
    return _mm512_maskz_loadu_epi8(first_bytes(count), from);
  }
};

// The low halves of sixteen bytes, then their high ones.
struct VnniNibbles {
  static constexpr int kBits = 4;
  static constexpr int64_t kStep = 32;
  static constexpr int64_t kUnit = 16;
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

// For several queries sixteen rows are put side by side first, four columns of each in a register: then a lane is a
// row, and nothing is added across. Their sums take half the time; putting them so takes that of some five queries, and
// what they take together with the weights must stay in the first-level cache.
constexpr int64_t kFewestForPanels = 8;
constexpr int64_t kMostPanelColumns = 512;
constexpr int64_t kPanelUnit = 16;  // columns that are put side by side together
constexpr int kTogether = 4;        // queries
constexpr int64_t kMostScans = 32;

struct Panel {
  alignas(64) uint8_t bytes[kSumsTogether * kMostPanelColumns];
  alignas(64) uint8_t spread[kSumsTogether * kMostPanelColumns + 64];  // rows whose last register may be a part of one
  int64_t units = 0;                                                   // of kPanelUnit columns

  template <typename Packing>
  KITH_FOR_WEIGHTS void fill_from(const uint8_t* rows, int64_t stride, int64_t cols) {
    if constexpr (kWholeBytes<Packing>) return fill(rows, stride, cols);
    for (int64_t r = 0; r < kSumsTogether; ++r) {
      const uint8_t* const row = rows + r * stride;
      uint8_t* const to = spread + r * cols;
      go_over_row<Packing, true>(
          stride,
          [=](int64_t from, int64_t at) KITH_FOR_WEIGHTS { _mm512_storeu_si512(to + at, Packing::load(row + from)); },
          [=](int64_t from, int64_t at, int64_t count)
              KITH_FOR_WEIGHTS { _mm512_storeu_si512(to + at, Packing::load_some(row + from, count)); });
    }
    fill(spread, cols, cols);
  }

  KITH_FOR_WEIGHTS void fill(const uint8_t* rows, int64_t stride, int64_t cols) {
    units = divide_up(cols, kPanelUnit);
    for (int64_t u = 0; u < units; ++u) {
      const uint8_t* const at = rows + std::min(u * kPanelUnit, cols - kPanelUnit);
      const auto load = [&](int64_t row) KITH_FOR_WEIGHTS {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + row * stride));
      };
      __m512i fours[4];  // lane j: row 4 j + i
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const __m512i two = _mm512_inserti32x4(_mm512_castsi128_si512(load(i)), load(i + 4), 1);
        fours[i] = _mm512_inserti32x4(_mm512_inserti32x4(two, load(i + 8), 2), load(i + 12), 3);
      }
      const __m512i a = _mm512_unpacklo_epi32(fours[0], fours[1]);
      const __m512i b = _mm512_unpackhi_epi32(fours[0], fours[1]);
      const __m512i c = _mm512_unpacklo_epi32(fours[2], fours[3]);
      const __m512i d = _mm512_unpackhi_epi32(fours[2], fours[3]);
      uint8_t* const to = bytes + u * kSumsTogether * kPanelUnit;
      _mm512_store_si512(to, _mm512_unpacklo_epi64(a, c));
      _mm512_store_si512(to + 64, _mm512_unpackhi_epi64(a, c));
      _mm512_store_si512(to + 128, _mm512_unpacklo_epi64(b, d));
      _mm512_store_si512(to + 192, _mm512_unpackhi_epi64(b, d));
    }
  }

  // The sums of the sixteen rows by the weights of kQueries.
  template <int kQueries>
  KITH_FOR_WEIGHTS void sum(const int8_t* const* weights, __m512i* sums) const {
    __m512i even[kQueries];
    __m512i odd[kQueries];
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) even[q] = odd[q] = _mm512_setzero_si512();
    for (int64_t u = 0; u < units; ++u) {
      const uint8_t* const from = bytes + u * kSumsTogether * kPanelUnit;
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) {
        const __m512i x = _mm512_load_si512(from + c * 64);
#pragma GCC unroll 4
        for (int q = 0; q < kQueries; ++q) {
          int32_t weight;
          std::memcpy(&weight, weights[q] + u * kPanelUnit + c * 4, 4);
          __m512i& to = c % 2 == 0 ? even[q] : odd[q];
          to = _mm512_dpbusd_epi32(to, x, _mm512_set1_epi32(weight));
        }
      }
    }
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) sums[q] = _mm512_add_epi32(even[q], odd[q]);
  }
};

template <typename Packing>
KITH_FOR_WEIGHTS void scan_panels(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t count) {
  using PanelScan = OneQueryScan<VnniSet, Packing, kPartSteps>;
  Panel panel;
  alignas(64) std::byte memory[kMostScans * sizeof(PanelScan)];
  auto* const scans = reinterpret_cast<PanelScan*>(memory);
  for (int64_t q = 0; q < count; ++q) {
    new (scans + q) PanelScan(rows, queries[q]);
    scans[q].together = false;  // the high plane alone decides on most rows
  }
  int64_t i = 0;
  for (; i + kSumsTogether <= rows.count; i += kSumsTogether) {
    panel.fill_from<Packing>(rows.bytes + i * rows.stride, rows.stride, rows.cols);
    const auto put = [&](PanelScan& scan, __m512i upper) KITH_FOR_WEIGHTS {
      scan.template put_passing<true>(i, kSumsTogether, first, upper, [&](uint32_t) KITH_FOR_WEIGHTS {
        __m512i lower;
        panel.sum<1>(&scan.low, &lower);
        return lower;
      });
    };
    int64_t q = 0;
    for (; q + kTogether <= count; q += kTogether) {
      const int8_t* const weights[] = {scans[q].high, scans[q + 1].high, scans[q + 2].high, scans[q + 3].high};
      __m512i upper[kTogether];
      panel.sum<kTogether>(weights, upper);
      for (int j = 0; j < kTogether; ++j) put(scans[q + j], upper[j]);
    }
    for (; q < count; ++q) {
      __m512i upper;
      panel.sum<1>(&scans[q].high, &upper);
      put(scans[q], upper);
    }
  }
  for (int64_t q = 0; q < count; ++q) {
    if (i < rows.count) scans[q].template scan_register<false>(i, rows.count - i, first);
    queries[q].found = scans[q].found;
  }
}

}  // namespace

void scan_weighted_bytes_vnni(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  const bool panels = query_count >= kFewestForPanels && rows.cols <= kMostPanelColumns;
  with_packing<VnniSet, VnniBytes, VnniNibbles>(rows.bits, [&]<typename Packing>(Packing) {
    if (!panels) return scan_all_queries<VnniSet, Packing>(rows, first, queries, query_count);
    for (int64_t q = 0; q < query_count; q += kMostScans) {
      scan_panels<Packing>(rows, first, queries + q, std::min(kMostScans, query_count - q));
    }
  });
}

}  // namespace kith

#endif
