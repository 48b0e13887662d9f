// Rows of bytes against a query's weights with AVX-512's VNNI: 64 products of a byte as it is and a weight with its sign
// to each instruction. Sixteen rows of one query at a time, whose sums are added in a tree that leaves one in each lane;
// several queries take turns with rows that are near by then. Cost: for 128 columns about five cycles a row.
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_X86)

#include "kernels/distance/add_each_avx512-inl.hpp"
#include "kernels/lists/weighted_bytes.hpp"

#include <algorithm>
#include <bit>

#define KITH_FOR_WEIGHTS KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

namespace kith {
namespace {

constexpr int kSummedRows = kSumsTogether;
constexpr int64_t kUnitBytes = 16;  // that a row is a multiple of; its last unit begins among the bytes before it

KITH_FOR_WEIGHTS inline __mmask64 first_bytes(int64_t count) { return ~uint64_t{0} >> (64 - count); }

// How the values of a row lie: kStep bytes of it are 64 of them, in the order that its weights have.
struct VnniBytes {
  static constexpr int64_t kStep = 64;
  static constexpr int64_t kValues = 1;  // of a byte
  KITH_FOR_WEIGHTS static __m512i load(const uint8_t* from) { return _mm512_loadu_si512(from); }
  // Zeros behind the first `count` bytes, which are not read.
  KITH_FOR_WEIGHTS static __m512i load_some(const uint8_t* from, int64_t count) {
    return _mm512_maskz_loadu_epi8(first_bytes(count), from);
  }
};

// The low halves of sixteen bytes, then their high ones (packed_weight_place).
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

// The sums of four rows by one plane of the weights, not yet added across.
template <typename Packing>
KITH_FOR_WEIGHTS inline void sum_four_rows(const uint8_t* const* rows, int64_t row_bytes, const int8_t* weights,
                                           __m512i* sums) {
  __m512i s0 = _mm512_setzero_si512();
  __m512i s1 = s0;
  __m512i s2 = s0;
  __m512i s3 = s0;
  const int64_t whole = row_bytes / kUnitBytes * kUnitBytes;
  int64_t from = 0;
  for (; from + Packing::kStep <= whole; from += Packing::kStep) {
    const __m512i w = _mm512_loadu_si512(weights + from * Packing::kValues);
    s0 = _mm512_dpbusd_epi32(s0, Packing::load(rows[0] + from), w);
    s1 = _mm512_dpbusd_epi32(s1, Packing::load(rows[1] + from), w);
    s2 = _mm512_dpbusd_epi32(s2, Packing::load(rows[2] + from), w);
    s3 = _mm512_dpbusd_epi32(s3, Packing::load(rows[3] + from), w);
  }
  // The units that are left, and then the last one, where the row ends within it: the weights of columns that were there
  // are zeros.
  for (int64_t at = from; at < row_bytes;) {
    const int64_t count = at < whole ? whole - at : kUnitBytes;
    const int64_t place = at < whole ? at : row_bytes - kUnitBytes;
    const __m512i w =
        _mm512_maskz_loadu_epi8(first_bytes(count * Packing::kValues), weights + at * Packing::kValues);
    s0 = _mm512_dpbusd_epi32(s0, Packing::load_some(rows[0] + place, count), w);
    s1 = _mm512_dpbusd_epi32(s1, Packing::load_some(rows[1] + place, count), w);
    s2 = _mm512_dpbusd_epi32(s2, Packing::load_some(rows[2] + place, count), w);
    s3 = _mm512_dpbusd_epi32(s3, Packing::load_some(rows[3] + place, count), w);
    at += count;
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

// Sixteen rows; of those of four that `wanted` has no bit of, sums are zeros.
template <typename Packing>
KITH_FOR_WEIGHTS inline __m512i sum_rows_of(const uint8_t* const (&rows)[kSummedRows], uint32_t wanted,
                                            int64_t row_bytes, const int8_t* weights) {
  __m512i sums[kSummedRows];
#pragma GCC unroll 4
  for (int r = 0; r < kSummedRows; r += 4) {
    if ((wanted >> r & 15) != 0) {
      sum_four_rows<Packing>(rows + r, row_bytes, weights, sums + r);
    } else {
      sums[r] = sums[r + 1] = sums[r + 2] = sums[r + 3] = _mm512_setzero_si512();
    }
  }
  return add_each(sums);
}

template <typename Packing>
KITH_FOR_WEIGHTS void scan_one_query(const ByteRows& given, uint32_t first, ByteRowsQuery& query) {
  const ByteRows rows = given;  // which nothing that is written changes
  const int64_t row_bytes = Packing::kValues == 1 ? rows.cols : rows.stride;
  const PlaneTerms planes = plane_terms(rows, query, 0);
  const auto* const high = static_cast<const int8_t*>(query.weights.weights);
  const int8_t* const low = high + weight_bytes(rows.cols) / 2;
  const __m512 factor = _mm512_set1_ps(query.factor);
  const __m512 tilt = _mm512_set1_ps(query.tilt);
  const __m512 limit = _mm512_set1_ps(query.limit);
  for (int64_t i = 0; i < rows.count; i += kSummedRows) {
    const int64_t here = std::min<int64_t>(kSummedRows, rows.count - i);
    const auto there = static_cast<__mmask16>((1u << here) - 1);
    const uint8_t* of[kSummedRows];
    for (int r = 0; r < kSummedRows; ++r) of[r] = rows.bytes + (i + (r < here ? r : 0)) * rows.stride;
    const auto load = [&](const float* from, float without) KITH_FOR_WEIGHTS {
      return from == nullptr ? _mm512_set1_ps(without) : _mm512_maskz_loadu_ps(there, from + i);
    };
    const __m512 scales = load(rows.scales, 1);
    const __m512 terms = load(rows.terms, 0);
    const __m512 spreads = load(rows.spreads, 0);
    // Those whose least value is not above the limit; a NaN is not.
    const auto passing = [&](__m512 value) KITH_FOR_WEIGHTS {
      const __m512 least = _mm512_fnmadd_ps(spreads, tilt, value);
      return static_cast<uint32_t>(there & ~_mm512_cmp_ps_mask(least, limit, _CMP_GT_OQ));
    };
    const auto value_of = [&](__m512i sums, float constant) KITH_FOR_WEIGHTS {
      const __m512 product = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), factor, _mm512_set1_ps(constant));
      return _mm512_fmadd_ps(product, scales, terms);
    };
    const __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(sum_rows_of<Packing>(of, ~0u, row_bytes, high), 7),
                                           _mm512_set1_epi32(planes.high_shift));
    const uint32_t left = passing(value_of(upper, planes.rough_constant));
    if (left == 0) continue;  // nearly always
    const __m512i lower = _mm512_add_epi32(sum_rows_of<Packing>(of, left, row_bytes, low),
                                           _mm512_set1_epi32(planes.low_shift));
    const __m512 value = value_of(_mm512_add_epi32(upper, lower), query.constant);
    alignas(64) float values[kSummedRows];
    _mm512_store_ps(values, value);
    for (uint32_t passed = left & passing(value); passed != 0; passed &= passed - 1) {
      const int r = std::countr_zero(passed);
      query.values[query.found] = values[r];
      query.numbers[query.found] = first + static_cast<uint32_t>(i + r);
      ++query.found;
    }
  }
}

}  // namespace

void scan_weighted_bytes_vnni(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  for (int64_t q = 0; q < query_count; ++q) {
    if (rows.bits == 4) {
      scan_one_query<VnniNibbles>(rows, first, queries[q]);
    } else {
      scan_one_query<VnniBytes>(rows, first, queries[q]);
    }
  }
}

}  // namespace kith

#endif
