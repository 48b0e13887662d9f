// Byte counts as people write them: "512M", "1.5 GiB".
#pragma once

#include <cstdint>
#include <string>

namespace kith {

// "832 B", "1.5 MiB", "12 GiB".
std::string format_bytes(int64_t bytes);
// The same, rounded up.
std::string format_bytes_up(int64_t bytes);

// a * b, or INT64_MAX where that would overflow. Both are at least 0.
constexpr int64_t saturating_multiply(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a > INT64_MAX / b ? INT64_MAX : a * b;
}

constexpr int64_t saturating_add(int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

}  // namespace kith
