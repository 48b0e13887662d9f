// 8-bit codes looked up in NEON's registers: a table of 256 bytes is sixteen of them. A lookup in two registers gives
// zero for a number beyond them, so that eight of them, each with its own part of the numbers, are or-ed together; for
// two registers it takes half the time that it takes for four.
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_ARM)

#define KITH_FOR_LOOKS
#include "kernels/lists/code_screen_looks-inl.hpp"

#include <arm_neon.h>

namespace kith {

namespace {

constexpr int kGroups = kColumnVectors / 16;
static_assert(kGroups == 4);

struct NeonSums {
  static constexpr int64_t kPartCycles = 28;  // of a part for all vectors

  uint16x8_t low[kGroups];
  uint16x8_t high[kGroups];

  [[gnu::always_inline]] NeonSums() {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) low[g] = high[g] = vdupq_n_u16(0);
  }

  // One part's bytes of all vectors.
  [[gnu::always_inline]] void add_part(const uint8_t* column, const uint8_t* table) {
    constexpr int kPieces = 8;  // of two registers
    uint8x16_t codes[kGroups];
    uint8x16_t found[kGroups];
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) codes[g] = vld1q_u8(column + 16 * g);
#pragma GCC unroll 8
    for (int t = 0; t < kPieces; ++t) {
      const uint8x16x2_t piece = vld1q_u8_x2(table + 32 * t);
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) {
        const uint8x16_t numbers = t == 0 ? codes[g] : vsubq_u8(codes[g], vdupq_n_u8(static_cast<uint8_t>(32 * t)));
        const uint8x16_t of_piece = vqtbl2q_u8(piece, numbers);
        found[g] = t == 0 ? of_piece : vorrq_u8(found[g], of_piece);
      }
    }
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      low[g] = vaddw_u8(low[g], vget_low_u8(found[g]));
      high[g] = vaddw_high_u8(high[g], found[g]);
    }
  }

  // A bit for each vector whose sum is below its limit.
  uint64_t below(const uint16_t* limits) const {
    const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    uint8x16_t of[kGroups];
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      const uint16x8_t first = vcltq_u16(low[g], vld1q_u16(limits + 16 * g));
      const uint16x8_t second = vcltq_u16(high[g], vld1q_u16(limits + 16 * g + 8));
      of[g] = vandq_u8(vcombine_u8(vmovn_u16(first), vmovn_u16(second)), bits);
    }
    const uint8x16_t all = vpaddq_u8(vpaddq_u8(of[0], of[1]), vpaddq_u8(of[2], of[3]));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
  }

  void store(uint16_t* sums) const {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      vst1q_u16(sums + 16 * g, low[g]);
      vst1q_u16(sums + 16 * g + 8, high[g]);
    }
  }
};

}  // namespace

uint64_t screen_byte_columns_neon(int64_t parts, const uint8_t* block, const uint8_t* tables, const uint16_t* below,
                                  ScreenLook& look) {
  return screen_with_looks<NeonSums>(parts, block, tables, below, look);
}

void sum_byte_columns_neon(int64_t parts, const uint8_t* block, const uint8_t* tables, uint16_t* sums) {
  sum_all_parts<NeonSums>(parts, block, tables, sums);
}

}  // namespace kith

#endif
