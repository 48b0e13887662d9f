// A tile of ARM's dot products of bytes, which exact bytes and rounded floats share: four products to each 32-bit lane,
// by a query's four bytes broadcast from a lane. 8 queries by 12 rows: 24 registers of sums, 3 of rows, 2 of queries.
//
// Only for files that are compiled for these instructions, since clang declares their intrinsics only then.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace kith {

inline constexpr int kDotQueries = 8;
inline constexpr int kDotVectors = 3;
inline constexpr int kDotRows = 4 * kDotVectors;

struct UnsignedDot {
  template <int kLane>
  static inline int32x4_t dot(int32x4_t sum, uint8x16_t rows, uint8x16_t queries) {
    return vreinterpretq_s32_u32(vdotq_laneq_u32(vreinterpretq_u32_s32(sum), rows, queries, kLane));
  }
};

struct SignedDot {
  template <int kLane>
  static inline int32x4_t dot(int32x4_t sum, uint8x16_t rows, uint8x16_t queries) {
    return vdotq_laneq_s32(sum, vreinterpretq_s8_u8(rows), vreinterpretq_s8_u8(queries), kLane);
  }
};

template <typename Dot, int kLane>
inline void add_dots(uint8x16_t queries, const uint8x16_t (&rows)[kDotVectors], int32x4_t (&sums)[kDotVectors]) {
#pragma GCC unroll 3
  for (int v = 0; v < kDotVectors; ++v) sums[v] = Dot::template dot<kLane>(sums[v], rows[v], queries);
}

// The sums of a panel of queries with one of rows, of `units` words of four columns.
template <typename Dot>
__attribute__((always_inline)) inline void multiply_tile(const uint8_t* queries, const uint8_t* rows, int64_t units,
                                                         int32x4_t (&sums)[kDotQueries][kDotVectors]) {
#pragma GCC unroll 8
  for (int q = 0; q < kDotQueries; ++q) {
#pragma GCC unroll 3
    for (int v = 0; v < kDotVectors; ++v) sums[q][v] = vdupq_n_s32(0);
  }
  for (int64_t u = 0; u < units; ++u) {
    uint8x16_t r[kDotVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kDotVectors; ++v) r[v] = vld1q_u8(rows + 16 * v);
#pragma GCC unroll 2
    for (int q = 0; q < kDotQueries; q += 4) {
      const uint8x16_t four = vld1q_u8(queries + 4 * q);
      add_dots<Dot, 0>(four, r, sums[q]);
      add_dots<Dot, 1>(four, r, sums[q + 1]);
      add_dots<Dot, 2>(four, r, sums[q + 2]);
      add_dots<Dot, 3>(four, r, sums[q + 3]);
    }
    queries += 4 * kDotQueries;
    rows += 4 * kDotRows;
  }
}

// The same for one query of its panel. Two sets of sums, since one would wait for itself.
template <typename Dot>
__attribute__((always_inline)) inline void multiply_tile(const uint8_t* query, const uint8_t* rows, int64_t units,
                                                         int32x4_t (&sums)[1][kDotVectors]) {
  int32x4_t other[kDotVectors];
#pragma GCC unroll 3
  for (int v = 0; v < kDotVectors; ++v) other[v] = sums[0][v] = vdupq_n_s32(0);
  const auto add = [&](int64_t u, int32x4_t(&to)[kDotVectors]) {
    uint8x16_t r[kDotVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kDotVectors; ++v) r[v] = vld1q_u8(rows + u * 4 * kDotRows + 16 * v);
    const auto* const word = reinterpret_cast<const uint32_t*>(query + u * 4 * kDotQueries);
    add_dots<Dot, 0>(vreinterpretq_u8_u32(vld1q_dup_u32(word)), r, to);
  };
  int64_t u = 0;
  for (; u + 2 <= units; u += 2) {
    add(u, sums[0]);
    add(u + 1, other);
  }
  if (u < units) add(u, sums[0]);
#pragma GCC unroll 3
  for (int v = 0; v < kDotVectors; ++v) sums[0][v] = vaddq_s32(sums[0][v], other[v]);
}

}  // namespace kith
