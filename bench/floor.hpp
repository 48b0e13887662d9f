// The floor of the hardware that benchmarks print beside their times, in milliseconds: what must be multiplied, read or
// copied, at the rates below. These are what an H200 was measured to reach: on another GPU the floor is still an
// H200's.
#pragma once

#include <cstdint>

inline constexpr double kHalfFlops = 731e12;   // of a product of 8192 x 8192 x 8192 halves
inline constexpr double kByteFlops = 1462e12;  // of bytes
inline constexpr double kReadBytes = 4.2e12;   // of device memory
inline constexpr double kCopyBytes = 55e9;     // between host and device

// All products of two matrices' rows.
inline double product_ms(double rows, double other_rows, double cols, double rate = kHalfFlops) {
  return 2e3 * rows * other_rows * cols / rate;
}
inline double read_ms(double bytes) { return 1e3 * bytes / kReadBytes; }
inline double copy_ms(double bytes) { return 1e3 * bytes / kCopyBytes; }
