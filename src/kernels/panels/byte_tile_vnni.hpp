// A tile of AVX-512's dot products of bytes, which exact bytes and rounded floats share: four products of an unsigned
// byte of a query and a signed one of a row to each 32-bit lane. 8 queries by 48 rows: 24 registers of sums, 3 of rows,
// and a query's four bytes broadcast from memory.
#pragma once

#include "kernels/panels/instruction_family.hpp"

#include <immintrin.h>

#include <cstdint>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"  // false ones, from g++'s own intrinsics
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define KITH_FOR_VNNI KITH_FOR("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

namespace kith {

inline constexpr int kVnniQueries = 8;
inline constexpr int kVnniLanes = 16;
inline constexpr int kVnniRows = 3 * kVnniLanes;

// The sums of one query. They are named, and the tile is stored before it is compared, since g++ would otherwise keep
// them in memory while it adds.
struct VnniSums {
  __m512i v0, v1, v2;

  KITH_FOR_VNNI VnniSums() : v0(_mm512_setzero_si512()), v1(v0), v2(v0) {}
  KITH_FOR_VNNI void add(int32_t four_bytes, __m512i r0, __m512i r1, __m512i r2) {
    const __m512i query = _mm512_set1_epi32(four_bytes);
    v0 = _mm512_dpbusd_epi32(v0, query, r0);
    v1 = _mm512_dpbusd_epi32(v1, query, r1);
    v2 = _mm512_dpbusd_epi32(v2, query, r2);
  }
  KITH_FOR_VNNI void store(int32_t* out) const {
    _mm512_store_si512(out, v0);
    _mm512_store_si512(out + kVnniLanes, v1);
    _mm512_store_si512(out + 2 * kVnniLanes, v2);
  }
};

// The sums of a panel of queries with one of rows, of `units` words of four columns. Each row of `out` is aligned.
KITH_FOR_VNNI __attribute__((noinline)) inline void multiply_tile(const int32_t* queries, const int32_t* rows,
                                                                  int64_t units, int32_t (*out)[kVnniRows]) {
  VnniSums s0, s1, s2, s3, s4, s5, s6, s7;
  for (int64_t u = 0; u < units; ++u) {
    const __m512i r0 = _mm512_load_si512(rows);
    const __m512i r1 = _mm512_load_si512(rows + kVnniLanes);
    const __m512i r2 = _mm512_load_si512(rows + 2 * kVnniLanes);
    s0.add(queries[0], r0, r1, r2);
    s1.add(queries[1], r0, r1, r2);
    s2.add(queries[2], r0, r1, r2);
    s3.add(queries[3], r0, r1, r2);
    s4.add(queries[4], r0, r1, r2);
    s5.add(queries[5], r0, r1, r2);
    s6.add(queries[6], r0, r1, r2);
    s7.add(queries[7], r0, r1, r2);
    queries += kVnniQueries;
    rows += kVnniRows;
  }
  s0.store(out[0]);
  s1.store(out[1]);
  s2.store(out[2]);
  s3.store(out[3]);
  s4.store(out[4]);
  s5.store(out[5]);
  s6.store(out[6]);
  s7.store(out[7]);
}

// The same for one query of its panel.
KITH_FOR_VNNI inline void multiply_one(const int32_t* query, const int32_t* rows, int64_t units, int32_t* out) {
  VnniSums sums;
  for (int64_t u = 0; u < units; ++u) {
    const __m512i r0 = _mm512_load_si512(rows);
    const __m512i r1 = _mm512_load_si512(rows + kVnniLanes);
    const __m512i r2 = _mm512_load_si512(rows + 2 * kVnniLanes);
    sums.add(query[u * kVnniQueries], r0, r1, r2);
    rows += kVnniRows;
  }
  sums.store(out);
}

}  // namespace kith
