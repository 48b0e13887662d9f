// The two 16-bit floats as storage types: f16 (IEEE half: 5 exponent bits, 10 of fraction) and bf16 (the upper half of
// an f32). They are held as integers, since no compiler that Kith supports has both as types, and turn into f32
// exactly; the way back rounds to nearest, ties to even, and keeps NaN, infinities and subnormals.
#pragma once

#include "core/host_device.hpp"

#include <cstdint>
#include <cstring>

namespace kith {

KITH_HOST_DEVICE inline float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

KITH_HOST_DEVICE inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

struct Half {
  uint16_t bits;

  KITH_HOST_DEVICE explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t rest = bits & 0x7FFFu;
#ifdef __CUDA_ARCH__
    float value;  // one instruction, but for what it makes of a NaN's digits
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    if (rest <= 0x7C00u) return value;
#endif
    if (rest >= 0x7C00u) return float_of_bits(sign | 0x7F800000u | (rest & 0x3FFu) << 13);  // infinity or NaN
    if (rest >= 0x0400u) return float_of_bits(sign | ((rest << 13) + (112u << 23)));        // normal
    return float_of_bits(sign | bits_of_float(static_cast<float>(rest) * 0x1p-24f));        // subnormal or zero
  }
  KITH_HOST_DEVICE explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
};

struct BFloat16 {
  uint16_t bits;

  KITH_HOST_DEVICE explicit operator float() const { return float_of_bits(static_cast<uint32_t>(bits) << 16); }
  KITH_HOST_DEVICE explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
};

KITH_HOST_DEVICE inline Half half_of(float value) {
  const uint32_t bits = bits_of_float(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {static_cast<uint16_t>(sign | 0x7E00u | (magnitude >> 13 & 0x3FFu))};  // NaN
  if (magnitude >= 0x477FF000u) return {static_cast<uint16_t>(sign | 0x7C00u)};  // rounds past the largest half
  if (magnitude >= 0x38800000u) {                                                // normal: round 13 bits away
    const uint32_t odd = magnitude >> 13 & 1u;
    return {static_cast<uint16_t>(sign | (magnitude - (112u << 23) + 0xFFFu + odd) >> 13)};
  }
  // Subnormal: adding 0.5 leaves the value's multiples of 2^-24 in the lowest bits, rounded by the addition.
  return {static_cast<uint16_t>(sign | (bits_of_float(float_of_bits(magnitude) + 0.5f) - bits_of_float(0.5f)))};
}

KITH_HOST_DEVICE inline BFloat16 bfloat16_of(float value) {
  const uint32_t bits = bits_of_float(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>(bits >> 16 | 0x40u)};  // a NaN stays one
  return {static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16)};
}

}  // namespace kith
