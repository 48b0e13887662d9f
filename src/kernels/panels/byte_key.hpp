// Keys of exact sums of bytes, and the sums that a key allows.
//
// The lanes of a canonical sum of bytes hold the same integers as any other order of adding them: the key follows from
// the sum alone.
#pragma once

#include "core/half.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/panels/byte_panels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kith {

inline float key_of_sum(KeyKind kind, int32_t sum) {
  return kind == KeyKind::l2 ? static_cast<float>(std::sqrt(static_cast<double>(sum))) : static_cast<float>(sum);
}

// The largest sum whose key is not above the limit, or one that no pair has.
inline int32_t largest_sum(KeyKind kind, float limit) {
  if (!(limit < static_cast<float>(kLargestLimit))) return kLargestLimit;
  const int64_t least = kind == KeyKind::inner_product ? kSmallestLimit : -1;  // not above, or below every sum
  if (kind != KeyKind::inner_product && limit < 0) return -1;
  if (limit < static_cast<float>(kSmallestLimit)) return kSmallestLimit;
  // A key is its sum, or the root of it, rounded once: it is the limit up to half way to the next float.
  const float next = float_of_bits(limit == 0 ? 1u : bits_of_float(limit) + (limit < 0 ? -1 : 1));
  const double middle = 0.5 * (static_cast<double>(limit) + static_cast<double>(next));
  // Of roots that is all: a square of at most 25 bits is exact in float64, and where it lies half way between floats below
  // 2^16 it is no whole number, and further from one than a root in float64 is from the root.
  if (kind == KeyKind::l2) return static_cast<int32_t>(std::min(middle * middle, static_cast<double>(kLargestLimit)));
  // A sum that lies there itself is rounded to the even one.
  auto sum = static_cast<int64_t>(std::clamp(std::floor(middle), static_cast<double>(least), 2147483647.0));
  while (sum > least && key_of_sum(kind, static_cast<int32_t>(sum)) > limit) --sum;
  return static_cast<int32_t>(sum);
}

}  // namespace kith
