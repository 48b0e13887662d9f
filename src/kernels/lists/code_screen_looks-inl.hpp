// Screens a block of 8-bit codes part by part. Sums only grow: once few vectors of the block are still below their
// limits, summing those individually is cheaper than looking up the remaining parts for all.
//
// The including file defines KITH_FOR_LOOKS, its target attribute, and Sums, the block's sums: add_part(), below() with
// a bit for each sum below its limit, and kPartCycles, the cycles per part.
#pragma once

#include "kernels/lists/code_screen.hpp"

#include <algorithm>
#include <bit>

namespace kith {
namespace {

constexpr int64_t kPartsBetweenLooks = 4;
constexpr int64_t kSumCycles = 16;  // to sum one vector, plus one per part

template <typename Sums>
KITH_FOR_LOOKS uint64_t screen_with_looks(int64_t parts, const uint8_t* block, const uint8_t* tables,
                                          const uint16_t* below, ScreenLook& look) {
  constexpr int64_t kFirst = kPartsBetweenLooks;
  if (look.part == 0) look.part = std::max(kFirst, 3 * parts / 4 / kFirst * kFirst);
  Sums sums;
  for (int64_t p = 0; p < parts; ++p, block += kColumnVectors, tables += 256) {
    if (p >= look.part && p % kPartsBetweenLooks == 0) {
      const uint64_t passing = sums.below(below);
      const int64_t one_by_one = std::popcount(passing) * (kSumCycles + parts);
      const int64_t for_all = (parts - p) * Sums::kPartCycles;
      if (one_by_one <= for_all) {
        if (p == look.part && 2 * one_by_one <= for_all) look.part = std::max(kFirst, p - kFirst);
        return passing;
      }
      if (p == look.part) look.part = p + kFirst;
    }
    sums.add_part(block, tables);
  }
  look.part = std::min(look.part, std::max(kFirst, (parts - 1) / kFirst * kFirst));  // later checks are useless
  return sums.below(below);
}

template <typename Sums>
KITH_FOR_LOOKS void sum_all_parts(int64_t parts, const uint8_t* block, const uint8_t* tables, uint16_t* out) {
  Sums sums;
  for (int64_t p = 0; p < parts; ++p, block += kColumnVectors, tables += 256) sums.add_part(block, tables);
  sums.store(out);
}

}  // namespace
}  // namespace kith
