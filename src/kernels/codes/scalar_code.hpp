// One value to a few bits, and back: what every scalar code is made of, on the CPU and on GPUs.
//
// The code is that of FAISS, bit for bit: with 8 bits the product with 255 is rounded to f32 before it is cut off, with
// fewer it is exact.
#pragma once

#include "core/host_device.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

KITH_HOST_DEVICE constexpr int scalar_levels(int bits) { return (1 << bits) - 1; }

// `least` and `span` are the column's range. Values outside are clamped to it; NaN has code 0.
KITH_HOST_DEVICE inline uint32_t scalar_code(float value, float least, float span, int bits) {
  float t = span != 0.0f ? (value - least) / span : 0.0f;
  t = t > 0.0f ? (t < 1.0f ? t : 1.0f) : 0.0f;
  const float levels = static_cast<float>(scalar_levels(bits));
  const uint32_t code = static_cast<uint32_t>(t * levels);
  if (bits == 8 || code == 0) return code;
  // levels * t < code, with exact sums: (levels + 1) * t and code are within a factor of two.
  return (levels + 1.0f) * t - static_cast<float>(code) < t ? code - 1 : code;
}

// value = fma(code, step, base): the middle of what the code stands for.
inline float scalar_step(float span, int bits) {
  return static_cast<float>(static_cast<double>(span) / scalar_levels(bits));
}
inline float scalar_base(float least, float span, int bits) {
  return static_cast<float>(static_cast<double>(least) + 0.5 * static_cast<double>(span) / scalar_levels(bits));
}

}  // namespace kith
