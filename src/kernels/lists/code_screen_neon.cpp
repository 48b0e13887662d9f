// 8-bit codes looked up in NEON's registers: a table of 256 bytes is sixteen of them. A lookup in four registers gives
// zero for a number beyond them, so that four of them, each with its own part of the numbers, are or-ed together; half
// a table at a time is held for 64 vectors.
#include "kernels/panels/instruction_family.hpp"

#if defined(KITH_ARM)

#include "kernels/lists/code_screen.hpp"

#include <arm_neon.h>

namespace kith {

void sum_byte_columns_neon(int64_t parts, const uint8_t* block, const uint8_t* tables, uint16_t* sums) {
  constexpr int kGroups = kColumnVectors / 16;
  uint16x8_t low[kGroups];
  uint16x8_t high[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) low[g] = high[g] = vdupq_n_u16(0);
  for (int64_t p = 0; p < parts; ++p, block += kColumnVectors, tables += 256) {
    uint8x16_t codes[kGroups];
    uint8x16_t found[kGroups];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const uint8x16x4_t first = vld1q_u8_x4(tables + 128 * half);
      const uint8x16x4_t second = vld1q_u8_x4(tables + 128 * half + 64);
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) {
        // Numbers of this half, from 0 on.
        codes[g] = half == 0 ? vld1q_u8(block + 16 * g) : veorq_u8(codes[g], vdupq_n_u8(128));
        const uint8x16_t of_half =
            vorrq_u8(vqtbl4q_u8(first, codes[g]), vqtbl4q_u8(second, vsubq_u8(codes[g], vdupq_n_u8(64))));
        found[g] = half == 0 ? of_half : vorrq_u8(found[g], of_half);
      }
    }
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      low[g] = vaddw_u8(low[g], vget_low_u8(found[g]));
      high[g] = vaddw_high_u8(high[g], found[g]);
    }
  }
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
    vst1q_u16(sums + 16 * g, low[g]);
    vst1q_u16(sums + 16 * g + 8, high[g]);
  }
}

}  // namespace kith

#endif
