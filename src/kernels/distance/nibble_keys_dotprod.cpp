// Integer keys of rows of four bits a column, with ARM's SDOT: a mask and a shift make 16 bytes two vectors of 16 c,
// twice what a row stands for. A key by squares is |b|^2 - 2 b (8 c) + |8 c|^2: minus the product with 16 c, and a
// quarter of its square. Cost: six operations for 32 columns of a row, four rows at a time.
#include "kernels/distance/nibble_keys_cpu.hpp"
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_ARM)

#include <arm_neon.h>

#include <algorithm>

namespace kith {
namespace {

constexpr int kNibbleDotRows = 4;
constexpr int64_t kNibbleDotBytes = 16;

template <ByteKeyKind kKind>
void nibble_keys_by_dots(const int8_t* query, const ByteKeyRows& rows, const uint32_t* numbers, int64_t count,
                         int32_t* keys) {
  const int8x16_t upper = vdupq_n_s8(static_cast<int8_t>(0xF0));
  int32x4_t norm = vdupq_n_s32(0);
  if constexpr (kKind == ByteKeyKind::squares) {
    for (int64_t c = 0; c < 2 * rows.stride; c += kNibbleDotBytes) {
      const int8x16_t q = vld1q_s8(query + c);
      norm = vdotq_s32(norm, q, q);
    }
    norm = vdupq_n_s32(vaddvq_s32(norm));
  }
  for (int64_t first = 0; first < count; first += kNibbleDotRows) {
    const int8_t* some[kNibbleDotRows];
    for (int64_t r = 0; r < kNibbleDotRows; ++r) {
      some[r] = rows.data + static_cast<int64_t>(numbers[std::min(first + r, count - 1)]) * rows.stride;
    }
    int32x4_t products[kNibbleDotRows];
    int32x4_t squares[kNibbleDotRows];
#pragma GCC unroll 4
    for (int r = 0; r < kNibbleDotRows; ++r) products[r] = squares[r] = vdupq_n_s32(0);
    for (int64_t b = 0; b < rows.stride; b += kNibbleDotBytes) {
      const int8x16_t low_query = vld1q_s8(query + 2 * b);
      const int8x16_t high_query = vld1q_s8(query + 2 * b + kNibbleDotBytes);
#pragma GCC unroll 4
      for (int r = 0; r < kNibbleDotRows; ++r) {
        const int8x16_t both = vld1q_s8(some[r] + b);
        const int8x16_t low = vshlq_n_s8(both, 4);
        const int8x16_t high = vandq_s8(both, upper);
        products[r] = vdotq_s32(products[r], low_query, low);
        products[r] = vdotq_s32(products[r], high_query, high);
        if constexpr (kKind == ByteKeyKind::squares) {
          squares[r] = vdotq_s32(squares[r], low, low);
          squares[r] = vdotq_s32(squares[r], high, high);
        }
      }
    }
    int32x4_t sums[kNibbleDotRows];
#pragma GCC unroll 4
    for (int r = 0; r < kNibbleDotRows; ++r) {
      sums[r] = kKind == ByteKeyKind::squares ? vsubq_s32(vshrq_n_s32(squares[r], 2), products[r])
                                              : vnegq_s32(vshrq_n_s32(products[r], 1));
    }
    int32x4_t found = vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3]));
    if constexpr (kKind == ByteKeyKind::squares) found = vaddq_s32(found, norm);
    if (first + kNibbleDotRows <= count) {
      vst1q_s32(keys + first, found);
      continue;
    }
    alignas(16) int32_t last[kNibbleDotRows];
    vst1q_s32(last, found);
    std::copy_n(last, count - first, keys + first);
  }
}

}  // namespace

void nibble_keys_dotprod(ByteKeyKind kind, const int8_t* query, const ByteKeyRows& rows, const uint32_t* numbers,
                         int64_t count, int32_t* keys) {
  if (kind == ByteKeyKind::squares) {
    return nibble_keys_by_dots<ByteKeyKind::squares>(query, rows, numbers, count, keys);
  }
  nibble_keys_by_dots<ByteKeyKind::products>(query, rows, numbers, count, keys);
}

}  // namespace kith

#endif
