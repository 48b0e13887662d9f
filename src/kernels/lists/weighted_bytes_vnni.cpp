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
  // Rows that are contiguous, several in a register.
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

// For several queries rows are put side by side first, four columns of sixteen of them in a register: then a lane is a
// row, and nothing is added across. Their sums take a quarter of the time; what rows that lie so and weights take must
// stay in the first-level cache.
constexpr int64_t kPanelUnit = 16;  // columns that are put side by side together
constexpr int kRegisters = 2;       // of rows, that a query's weights are loaded for
constexpr int kTogether = 8;        // queries;
constexpr int64_t kFewestTogether = 3;  // fewer take less time one by one
constexpr int64_t kMostScans = 32;

KITH_FOR_WEIGHTS inline __m512i four_weights(const int8_t* from) {
  int32_t weights;
  std::memcpy(&weights, from, 4);
  return _mm512_set1_epi32(weights);
}

// The sums of a query with the rows of two registers. They are named, and stored as they are, since g++ would otherwise
// copy them while it adds.
struct PanelSums {
  __m512i first, second;

  KITH_FOR_WEIGHTS PanelSums() : first(_mm512_setzero_si512()), second(first) {}
  KITH_FOR_WEIGHTS void add(__m512i weights, __m512i rows, __m512i more) {
    first = _mm512_dpbusd_epi32(first, rows, weights);
    second = _mm512_dpbusd_epi32(second, more, weights);
  }
  KITH_FOR_WEIGHTS void store(__m512i* out) const {
    _mm512_store_si512(out, first);
    _mm512_store_si512(out + 1, second);
  }
};

// Those of kTogether queries.
KITH_FOR_WEIGHTS __attribute__((noinline)) void sum_panel(const int8_t* const* weights, const uint8_t* rows,
                                                          int64_t cols, __m512i* out) {
  PanelSums s0, s1, s2, s3, s4, s5, s6, s7;
  for (int64_t c = 0; c < cols; c += 4) {
    const __m512i first = _mm512_load_si512(rows);
    const __m512i second = _mm512_load_si512(rows + 64);
    s0.add(four_weights(weights[0] + c), first, second);
    s1.add(four_weights(weights[1] + c), first, second);
    s2.add(four_weights(weights[2] + c), first, second);
    s3.add(four_weights(weights[3] + c), first, second);
    s4.add(four_weights(weights[4] + c), first, second);
    s5.add(four_weights(weights[5] + c), first, second);
    s6.add(four_weights(weights[6] + c), first, second);
    s7.add(four_weights(weights[7] + c), first, second);
    rows += kRegisters * 64;
  }
  s0.store(out);
  s1.store(out + 2);
  s2.store(out + 4);
  s3.store(out + 6);
  s4.store(out + 8);
  s5.store(out + 10);
  s6.store(out + 12);
  s7.store(out + 14);
}

struct Panel {
  alignas(64) uint8_t bytes[kRegisters * kSumsTogether * kMostPanelColumns];
  alignas(64) uint8_t spread[kSumsTogether * kMostPanelColumns + 64];  // rows whose last register may be a part of one
  int64_t units = 0;                                                   // of kPanelUnit columns

  // Puts sixteen rows into a register's place, and asks for those that will be there next: a few lines at a time, so
  // that nothing waits for them.
  template <typename Packing>
  KITH_FOR_WEIGHTS void fill(const uint8_t* rows, int64_t stride, int64_t cols, int place) {
    const int64_t next = kRegisters * kSumsTogether * stride;
    if constexpr (kWholeBytes<Packing>) return put<true>(rows, stride, cols, place, next);
    for (int64_t r = 0; r < kSumsTogether; ++r) {
      const uint8_t* const row = rows + r * stride;
      for (int64_t at = 0; at < stride; at += kLine) __builtin_prefetch(row + next + at);
      uint8_t* const to = spread + r * cols;
      go_over_row<Packing, true>(
          stride,
          [=](int64_t from, int64_t at) KITH_FOR_WEIGHTS { _mm512_storeu_si512(to + at, Packing::load(row + from)); },
          [=](int64_t from, int64_t at, int64_t count)
              KITH_FOR_WEIGHTS { _mm512_storeu_si512(to + at, Packing::load_some(row + from, count)); });
    }
    put<false>(spread, cols, cols, place, 0);
  }

  template <bool kAsksAhead>
  KITH_FOR_WEIGHTS void put(const uint8_t* rows, int64_t stride, int64_t cols, int place, int64_t next) {
    constexpr int64_t kUnitBytes = kPanelUnit * kSumsTogether;
    units = divide_up(cols, kPanelUnit);
    for (int64_t u = 0; u < units; ++u) {
      for (int64_t line = 0; kAsksAhead && line < kUnitBytes; line += kLine)
        __builtin_prefetch(rows + next + u * kUnitBytes + line);
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
      uint8_t* const to = bytes + (u * 4 * kRegisters + place) * 64;
      _mm512_store_si512(to, _mm512_unpacklo_epi64(a, c));
      _mm512_store_si512(to + kRegisters * 64, _mm512_unpackhi_epi64(a, c));
      _mm512_store_si512(to + 2 * kRegisters * 64, _mm512_unpacklo_epi64(b, d));
      _mm512_store_si512(to + 3 * kRegisters * 64, _mm512_unpackhi_epi64(b, d));
    }
  }

  // The sums of all rows by the weights of kTogether queries.
  KITH_FOR_WEIGHTS void sum_all(const int8_t* const* weights, __m512i* out) const {
    sum_panel(weights, bytes, units * kPanelUnit, out);
  }
  // Those of kCount registers' rows by one query's.
  template <int kCount>
  KITH_FOR_WEIGHTS void sum_one(const int8_t* weights, int place, __m512i* out) const {
    __m512i sums[4 * kCount];
    for (int j = 0; j < 4 * kCount; ++j) sums[j] = _mm512_setzero_si512();
    const uint8_t* from = bytes + place * 64;
    for (int64_t c = 0; c < units * kPanelUnit; c += kPanelUnit, from += 4 * kRegisters * 64) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const __m512i w = four_weights(weights + c + 4 * j);
#pragma GCC unroll 2
        for (int r = 0; r < kCount; ++r) {
          __m512i& sum = sums[j * kCount + r];
          sum = _mm512_dpbusd_epi32(sum, _mm512_load_si512(from + (j * kRegisters + r) * 64), w);
        }
      }
    }
    for (int r = 0; r < kCount; ++r) {
      out[r] = _mm512_add_epi32(_mm512_add_epi32(sums[r], sums[kCount + r]),
                                _mm512_add_epi32(sums[2 * kCount + r], sums[3 * kCount + r]));
    }
  }
};

template <typename Packing>
class PanelsScan {
  using Scan = OneQueryScan<VnniSet, Packing, kPartSteps>;
  using RowTerms = typename Scan::RowTerms;

 public:
  KITH_FOR_WEIGHTS PanelsScan(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t count)
      : rows_(rows), first_(first), count_(count) {
    for (int64_t q = 0; q < count; ++q) {
      new (scans() + q) Scan(rows, queries[q]);
      scans()[q].together = false;  // the high plane alone decides on most rows
    }
  }

  KITH_FOR_WEIGHTS void run(ByteRowsQuery* queries) {
    int64_t i = 0;
    for (; i + kRegisters * kSumsTogether <= rows_.count; i += kRegisters * kSumsTogether) scan<kRegisters>(i);
    if (i + kSumsTogether <= rows_.count) {
      scan<1>(i);
      i += kSumsTogether;
    }
    for (int64_t q = 0; q < count_; ++q) {
      if (i < rows_.count) scans()[q].template scan_register<false>(i, rows_.count - i, first_);
      queries[q].found = scans()[q].found;
    }
  }

 private:
  Scan* scans() { return reinterpret_cast<Scan*>(memory_); }

  // Rows from i on, of kCount registers.
  template <int kCount>
  KITH_FOR_WEIGHTS void scan(int64_t i) {
    const uint8_t* const rows = rows_.bytes + i * rows_.stride;
    for (int r = 0; r < kCount; ++r)
      panel_.template fill<Packing>(rows + r * kSumsTogether * rows_.stride, rows_.stride, rows_.cols, r);
    RowTerms of_rows[kCount];
    for (int r = 0; r < kCount; ++r)
      of_rows[r] = Scan::template terms_of<true>(rows_, i + r * kSumsTogether, kSumsTogether);
    int64_t q = 0;
    for (; kCount == kRegisters && count_ - q >= kFewestTogether; q += kTogether) {
      const int64_t here = std::min<int64_t>(kTogether, count_ - q);
      const int8_t* high[kTogether];
      for (int64_t j = 0; j < kTogether; ++j) high[j] = scans()[q + std::min(j, here - 1)].high;
      __m512i upper[kTogether * kRegisters];
      panel_.sum_all(high, upper);
      for (int64_t j = 0; j < here; ++j) put<kCount>(scans()[q + j], i, of_rows, upper + j * kRegisters);
    }
    for (; q < count_; ++q) {
      __m512i upper[kCount];
      panel_.template sum_one<kCount>(scans()[q].high, 0, upper);
      put<kCount>(scans()[q], i, of_rows, upper);
    }
  }

  template <int kCount>
  KITH_FOR_WEIGHTS void put(Scan& scan, int64_t i, const RowTerms* of_rows, const __m512i* upper) {
    uint32_t some = 0;
    for (int r = 0; r < kCount; ++r) some |= scan.passing_roughly(of_rows[r], upper[r]);
    if (some == 0) return;
    for (int r = 0; r < kCount; ++r) {
      scan.template put_passing<true>(i + r * kSumsTogether, kSumsTogether, first_, upper[r],
                                      [&](uint32_t) KITH_FOR_WEIGHTS {
                                        __m512i lower;
                                        panel_.template sum_one<1>(scan.low, r, &lower);
                                        return lower;
                                      });
    }
  }

  const ByteRows& rows_;
  const uint32_t first_;
  const int64_t count_;
  Panel panel_;
  alignas(64) std::byte memory_[kMostScans * sizeof(Scan)];
};

}  // namespace

void scan_weighted_bytes_vnni(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  const bool panels = shares_weighted_rows(query_count, rows.cols);
  with_packing<VnniSet, VnniBytes, VnniNibbles>(rows.bits, [&]<typename Packing>(Packing) {
    if (!panels) return scan_all_queries<VnniSet, Packing>(rows, first, queries, query_count);
    for (int64_t q = 0; q < query_count; q += kMostScans) {
      PanelsScan<Packing>(rows, first, queries + q, std::min(kMostScans, query_count - q)).run(queries + q);
    }
  });
}

}  // namespace kith

#endif
