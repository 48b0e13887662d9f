// Keys of exact sums of bytes, and the sums that a key allows.
//
// The lanes of a canonical sum of bytes hold the same integers as any other order of adding them: the key follows from
// the sum alone.
#pragma once

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
  // A key is its sum, or the root of it, rounded once: the sum sought is near what the limit says.
  const double middle = kind == KeyKind::l2 ? static_cast<double>(limit) * limit : static_cast<double>(limit);
  const auto around = static_cast<int64_t>(std::clamp(middle, -2147483647.0, 2147483647.0));
  const int64_t reach = 2 + (std::abs(around) >> 21);
  int64_t low = std::max(least, around - reach);
  int64_t high = std::min<int64_t>(int64_t{kLargestLimit} + 1, around + reach);
  while (high - low > 1) {
    const int64_t sum = low + (high - low) / 2;
    if (key_of_sum(kind, static_cast<int32_t>(sum)) <= limit) {
      low = sum;
    } else {
      high = sum;
    }
  }
  return static_cast<int32_t>(low);
}

}  // namespace kith
