// The squared norm that a code holds, and the key that follows from it: one definition for CPUs and GPUs.
//
//   key = |q|^2 - 2 q x + norm, no less than 0; its root for l2
//
// in float64, with the canonical |q|^2 and q x (canonical.hpp), rounded once to f32. A norm is the canonical |x|^2 of
// the vector that is held, rounded to f32, or the nearest level to it, ties to the smaller number. Codes of their own
// (own_code.hpp) hold an estimate.
#pragma once

#include "kernels/codes/code_format.hpp"
#include "kernels/distance/canonical.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace kith {

// Whether keys of such codes are made from their norms.
KITH_HOST_DEVICE constexpr bool has_norm_keys(const CodeFormat& format, KeyKind kind) {
  return format.has_norm() && has_differences(kind);
}

// The bits behind the last sub-code.
KITH_HOST_DEVICE inline uint32_t norm_bits_of(const CodeFormat& format, const uint8_t* code) {
  const int64_t first = format.norm_at();
  const auto shift = static_cast<int>(first % 8);
  const uint8_t* const from = code + first / 8;
  const int bytes = (shift + format.norm_bits() + 7) / 8;
  uint64_t word = 0;
  for (int i = 0; i < bytes; ++i) word |= static_cast<uint64_t>(from[i]) << (8 * i);
  const uint64_t mask = (uint64_t{1} << format.norm_bits()) - 1;
  return static_cast<uint32_t>(word >> shift & mask);
}

KITH_HOST_DEVICE inline void set_norm_bits(const CodeFormat& format, uint32_t bits, uint8_t* code) {
  const int64_t first = format.norm_at();
  const auto shift = static_cast<int>(first % 8);
  uint8_t* const to = code + first / 8;
  const int bytes = (shift + format.norm_bits() + 7) / 8;
  const uint64_t mask = ((uint64_t{1} << format.norm_bits()) - 1) << shift;
  const uint64_t word = static_cast<uint64_t>(bits) << shift;
  for (int i = 0; i < bytes; ++i) {
    const auto kept = static_cast<uint8_t>(to[i] & ~(mask >> (8 * i)));
    to[i] = static_cast<uint8_t>(kept | (word >> (8 * i)));
  }
}

KITH_HOST_DEVICE inline float code_norm(const CodecView& codec, const uint8_t* code) {
  const uint32_t bits = norm_bits_of(codec.format, code);
  if (codec.format.has_levels()) return codec.levels[bits];
  float norm;
  memcpy(&norm, &bits, sizeof norm);
  return norm;
}

// The bits that stand for a norm.
KITH_HOST_DEVICE inline uint32_t norm_code(const CodecView& codec, float norm) {
  if (!codec.format.has_levels()) {
    uint32_t bits;
    memcpy(&bits, &norm, sizeof bits);
    return bits;
  }
  uint32_t nearest = 0;
  double least = HUGE_VAL;
  for (uint32_t i = 0; i < kNormLevels; ++i) {
    const double apart = fabs(static_cast<double>(norm) - static_cast<double>(codec.levels[i]));
    if (apart < least) {
      least = apart;
      nearest = i;
    }
  }
  return nearest;
}

// The norm of a decoded vector that a centre is added to: squares before and after.
KITH_HOST_DEVICE inline float moved_norm(float norm, double before, double after) {
  return static_cast<float>(static_cast<double>(norm) + (after - before));
}

// Twice the product is exact: it does not matter whether a compiler fuses it with the subtraction.
KITH_HOST_DEVICE inline float norm_key(KeyKind kind, double squared_query, double product, float norm) {
  double square = squared_query - 2 * product;
  square += static_cast<double>(norm);
  if (square < 0) square = 0;  // not a NaN
  return static_cast<float>(kind == KeyKind::l2 ? sqrt(square) : square);
}

}  // namespace kith
