// Sums and products of byte counts that do not overflow, beside their text (kith/byte_size.hpp).
#pragma once

#include <kith/byte_size.hpp>

#include <cstdint>

namespace kith {

// a * b, or INT64_MAX where that would overflow. Both are at least 0.
constexpr int64_t saturating_multiply(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a > INT64_MAX / b ? INT64_MAX : a * b;
}

constexpr int64_t saturating_add(int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

}  // namespace kith
