// Products of lists with ARM's BFMMLA (list_tiles.hpp): two rows of four columns by two queries of four columns, into
// the four sums of these pairs.
//
// The instruction adds products in pairs and rounds each sum to odd: less than two units of roundoff for every two
// columns and one more pair, which tile_product_bound's count of roundings covers.
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_ARM)

#include "core/divide.hpp"
#include "kernels/lists/gather_words-inl.hpp"
#include "kernels/lists/list_tiles.hpp"

#include <arm_neon.h>

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr int64_t kStepWords = 2;  // of one vector: four columns
constexpr int kRowPairs = kTileRows / 2;
constexpr int kQueryPairs = kTileQueries / 2;

float32x4_t widen(uint16x4_t values) { return vreinterpretq_f32_u32(vshll_n_u16(values, 16)); }

uint16x4_t upper_halves(float32x4_t values) { return vshrn_n_u32(vreinterpretq_u32_f32(values), 16); }

// Four columns of (vector - origin) * scale, and what is added to the sums.
inline uint16x4_t round_four(const float* vector, const float* origin, float scale, float32x4_t& squares,
                             float32x4_t& errors) {
  float32x4_t x = vld1q_f32(vector);
  if (origin != nullptr) x = vsubq_f32(x, vld1q_f32(origin));
  const float32x4_t near = widen(vreinterpret_u16_bf16(vcvt_bf16_f32(x)));
  const float32x4_t error = vsubq_f32(x, near);
  squares = vfmaq_f32(squares, x, x);
  errors = vfmaq_f32(errors, error, error);
  return upper_halves(vmulq_n_f32(near, scale));
}

// Pairs of vectors side by side, step by step.
template <int kPairs>
void place(const uint32_t* vectors, int64_t count, int64_t words, uint32_t* panel) {
  constexpr int64_t kPairWords = 2 * kStepWords;
  for (int pair = 0; pair < kPairs; ++pair) {
    uint32_t* to = panel + pair * kPairWords;
    if (2 * pair + 1 < count) {
      const uint32_t* const first = vectors + 2 * pair * words;
      const uint32_t* const second = first + words;
      int64_t word = 0;
      for (; word + 2 * kStepWords <= words; word += 2 * kStepWords, to += 2 * kPairs * kPairWords) {
        const uint64x2_t a = vreinterpretq_u64_u32(vld1q_u32(first + word));
        const uint64x2_t b = vreinterpretq_u64_u32(vld1q_u32(second + word));
        vst1q_u32(to, vreinterpretq_u32_u64(vzip1q_u64(a, b)));
        vst1q_u32(to + kPairs * kPairWords, vreinterpretq_u32_u64(vzip2q_u64(a, b)));
      }
      if (word < words) vst1q_u32(to, vcombine_u32(vld1_u32(first + word), vld1_u32(second + word)));
      continue;
    }
    for (int64_t word = 0; word < words; word += kStepWords, to += kPairs * kPairWords) {
      const uint32x2_t none = vdup_n_u32(0);
      vst1q_u32(to, vcombine_u32(2 * pair < count ? vld1_u32(vectors + 2 * pair * words + word) : none, none));
    }
  }
}

// Lanes that pass, moved to the front: byte numbers for each set of four.
struct FrontLanes {
  alignas(16) uint8_t bytes[16][16] = {};

  constexpr FrontLanes() {
    for (int set = 0; set < 16; ++set) {
      int at = 0;
      for (int lane = 0; lane < 4; ++lane) {
        if ((set >> lane & 1) == 0) continue;
        for (int b = 0; b < 4; ++b) bytes[set][4 * at + b] = static_cast<uint8_t>(4 * lane + b);
        ++at;
      }
      for (int b = 4 * at; b < 16; ++b) bytes[set][b] = 255;
    }
  }
};
constexpr FrontLanes kFrontLanes;

// Appends those of 12 values that are not above the limit, of rows from `first` on.
inline int64_t append(const float32x4_t (&values)[3], float limit, int64_t first, int64_t rows, float* to,
                      uint32_t* numbers, int64_t count) {
  const uint32x4_t bits = {1, 2, 4, 8};
  const uint32x4_t lanes = {0, 1, 2, 3};
#pragma GCC unroll 3
  for (int v = 0; v < 3; ++v) {
    const uint32x4_t number = vaddq_u32(lanes, vdupq_n_u32(static_cast<uint32_t>(first + 4 * v)));
    const uint32x4_t stays = vandq_u32(vmvnq_u32(vcgtq_f32(values[v], vdupq_n_f32(limit))),
                                       vcltq_u32(number, vdupq_n_u32(static_cast<uint32_t>(rows))));
    const uint32_t set = vaddvq_u32(vandq_u32(stays, bits));
    const uint8x16_t order = vld1q_u8(kFrontLanes.bytes[set]);
    vst1q_u8(reinterpret_cast<uint8_t*>(to + count), vqtbl1q_u8(vreinterpretq_u8_f32(values[v]), order));
    vst1q_u8(reinterpret_cast<uint8_t*>(numbers + count), vqtbl1q_u8(vreinterpretq_u8_u32(number), order));
    count += __builtin_popcount(set);
  }
  return count;
}

// A panel of queries, from number `query` on, with one of rows, from row `first` on.
__attribute__((noinline)) void scan_tile(const TileScan& scan, int64_t query, int64_t first, int64_t words,
                                         ListHits& hits) {
  float32x4_t sums[kQueryPairs][kRowPairs];
#pragma GCC unroll 6
  for (int r = 0; r < kRowPairs; ++r) {
    const float32x2_t two = vld1_f32(scan.terms + first + 2 * r);
#pragma GCC unroll 4
    for (int q = 0; q < kQueryPairs; ++q) sums[q][r] = vcombine_f32(two, two);
  }
  const auto* queries = reinterpret_cast<const uint16_t*>(scan.queries + query * words);
  const auto* rows = reinterpret_cast<const uint16_t*>(scan.panels + first * words);
  for (int64_t word = 0; word < words; word += kStepWords, queries += 8 * kQueryPairs, rows += 8 * kRowPairs) {
    bfloat16x8_t q[kQueryPairs];
#pragma GCC unroll 4
    for (int i = 0; i < kQueryPairs; ++i) q[i] = vreinterpretq_bf16_u16(vld1q_u16(queries + 8 * i));
#pragma GCC unroll 6
    for (int r = 0; r < kRowPairs; ++r) {
      const bfloat16x8_t pair = vreinterpretq_bf16_u16(vld1q_u16(rows + 8 * r));
#pragma GCC unroll 4
      for (int i = 0; i < kQueryPairs; ++i) sums[i][r] = vbfmmlaq_f32(sums[i][r], q[i], pair);
      // Or else all rows are loaded first, and sums have no register left.
      __asm__ volatile("" ::: "memory");
    }
  }

  // The least of each query's values in two lanes; a NaN stays one, and is not above.
  uint32x4_t passes[kQueryPairs];
  uint32x4_t any = vdupq_n_u32(0);
#pragma GCC unroll 4
  for (int q = 0; q < kQueryPairs; ++q) {
    float32x4_t least = sums[q][0];
#pragma GCC unroll 6
    for (int r = 1; r < kRowPairs; ++r) least = vminq_f32(least, sums[q][r]);
    const float32x4_t limit =
        vcombine_f32(vdup_n_f32(scan.limits[query + 2 * q]), vdup_n_f32(scan.limits[query + 2 * q + 1]));
    passes[q] = vmvnq_u32(vcgtq_f32(least, limit));
    any = vorrq_u32(any, passes[q]);
  }
  if (vmaxvq_u32(any) == 0) return;

#pragma GCC unroll 4
  for (int q = 0; q < kQueryPairs; ++q) {
    const auto take = [&](int64_t number, const float32x4_t(&values)[3]) {
      if (number >= scan.query_count) return;
      hits.counts[number] = append(values, scan.limits[number], first, scan.rows, hits.values + number * hits.stride,
                                   hits.rows + number * hits.stride, hits.counts[number]);
    };
    const uint64x2_t both = vreinterpretq_u64_u32(passes[q]);
    if (vgetq_lane_u64(both, 0) != 0) {
      float32x4_t values[3];
#pragma GCC unroll 3
      for (int v = 0; v < 3; ++v) {
        values[v] = vcombine_f32(vget_low_f32(sums[q][2 * v]), vget_low_f32(sums[q][2 * v + 1]));
      }
      take(query + 2 * q, values);
    }
    if (vgetq_lane_u64(both, 1) != 0) {
      float32x4_t values[3];
#pragma GCC unroll 3
      for (int v = 0; v < 3; ++v) {
        values[v] = vcombine_f32(vget_high_f32(sums[q][2 * v]), vget_high_f32(sums[q][2 * v + 1]));
      }
      take(query + 2 * q + 1, values);
    }
  }
}

}  // namespace

int64_t tile_words(int64_t cols) { return divide_up(cols, 4) * kStepWords; }

RoundedSums round_to_tile_words(const float* vector, const float* origin, float scale, int64_t cols, uint32_t* words) {
  auto* const out = reinterpret_cast<uint16_t*>(words);
  float32x4_t squares = vdupq_n_f32(0);
  float32x4_t errors = vdupq_n_f32(0);
  int64_t c = 0;
  for (; c + 4 <= cols; c += 4) {
    vst1_u16(out + c, round_four(vector + c, origin == nullptr ? nullptr : origin + c, scale, squares, errors));
  }
  if (c < cols) {
    float last[4] = {};
    float origin_last[4] = {};
    std::copy(vector + c, vector + cols, last);
    if (origin != nullptr) std::copy(origin + c, origin + cols, origin_last);
    vst1_u16(out + c, round_four(last, origin_last, scale, squares, errors));
  }
  return {vaddvq_f32(squares), vaddvq_f32(errors)};
}

void place_tile_rows(const uint32_t* vectors, int64_t count, int64_t words, uint32_t* panel) {
  place<kRowPairs>(vectors, count, words, panel);
}

void place_tile_queries(const uint32_t* vectors, int64_t count, int64_t words, uint32_t* panel) {
  place<kQueryPairs>(vectors, count, words, panel);
}

void gather_tile_words(const CodeFormat& format, const RoundedWords& rounded, const uint8_t* codes, int64_t count,
                       int64_t words, uint32_t* vectors, float* squares) {
  gather_words(format, rounded, codes, count, words, vectors, squares);
}

void scan_list_tiles(const TileScan& scan, ListHits& hits) {
  const int64_t words = tile_words(scan.cols);
  for (int64_t first = 0; first < scan.rows; first += kTileRows) {
    for (int64_t query = 0; query < scan.query_count; query += kTileQueries) {
      scan_tile(scan, query, first, words, hits);
    }
  }
}

}  // namespace kith

#endif
