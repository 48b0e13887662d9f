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
#include <limits>

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
  // A key is its sum, or the root of it, rounded once: it is the limit up to half way to the next float. Whether the sum
  // there, or the one beside it, is the last is looked up.
  const double next = std::nextafter(limit, std::numeric_limits<float>::infinity());
  const double middle = 0.5 * (static_cast<double>(limit) + next);
  const double guess = std::floor(kind == KeyKind::l2 ? middle * middle : middle);
  auto sum = static_cast<int64_t>(std::clamp(guess, static_cast<double>(least), 2147483647.0));
  const auto counts = [&](int64_t one) { return key_of_sum(kind, static_cast<int32_t>(one)) <= limit; };
  while (sum > least && !counts(sum)) --sum;
  while (sum < kLargestLimit && counts(sum + 1)) ++sum;
  return static_cast<int32_t>(sum);
}

}  // namespace kith
