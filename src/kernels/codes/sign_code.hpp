// RaBitQ's code of one bit a column (Gao and Long, SIGMOD 2024), one definition for CPUs and GPUs.
//
// With r = x - c, c being a centre, the code holds the signs of r, the step m = |r|^2 / sum |r_j| and a squared norm.
// It stands for c + y, y_j = m where r_j > 0 and -m elsewhere, which makes <y, r> = |r|^2: for a query in a random
// direction <y, q> is then an estimate of <r, q> without bias. Distances by l2 and sqeuclidean are
//
//   |q - c|^2 - 2 <q - c, y> + |r|^2  =  |q|^2 - 2 <q, c + y> + norm,    norm = |c + y|^2 + (|r|^2 - |y|^2)
//
// so that the norm is what keys with norms add (code_norm.hpp): that of the decoded vector, less what y is too long.
//
// A code's centre has two parts: one of the code itself, the same for all vectors, and that of a list, where codes are
// of residuals. The norm begins as |r|^2 and each part that is added to the decoded vector moves it (moved_norm).
#pragma once

#include "kernels/codes/code_format.hpp"

#include <cstdint>
#include <cstring>

namespace kith {

KITH_HOST_DEVICE inline int64_t sign_step_at(const CodeFormat& format) {
  return (format.norm_at() + format.norm_bits()) / 8;
}

KITH_HOST_DEVICE inline float sign_step(const CodeFormat& format, const uint8_t* code) {
  const uint8_t* const from = code + sign_step_at(format);
  uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) bits |= static_cast<uint32_t>(from[i]) << (8 * i);
  float step;
  memcpy(&step, &bits, sizeof step);
  return step;
}

KITH_HOST_DEVICE inline void set_sign_step(const CodeFormat& format, float step, uint8_t* code) {
  uint32_t bits;
  memcpy(&bits, &step, sizeof bits);
  uint8_t* const to = code + sign_step_at(format);
  for (int i = 0; i < 4; ++i) to[i] = static_cast<uint8_t>(bits >> (8 * i));
}

// The step of a vector, by canonical sums of its squares and of its absolute values. A zero vector has none.
KITH_HOST_DEVICE inline float step_of_sums(double squares, double absolutes) {
  return absolutes == 0 ? 0.0f : static_cast<float>(squares / absolutes);
}

// One f32 addition a value.
KITH_HOST_DEVICE inline float sign_value(float centre, bool above, float step) {
  return centre + (above ? step : -step);
}

// |y|^2, of codes that nothing has been added to.
KITH_HOST_DEVICE inline double sign_square(const CodeFormat& format, float step) {
  return static_cast<double>(step) * static_cast<double>(step) * static_cast<double>(format.cols);
}

// The norm of a decoded vector that a centre is added to: squares before and after.
KITH_HOST_DEVICE inline float moved_norm(float norm, double before, double after) {
  return static_cast<float>(static_cast<double>(norm) + (after - before));
}

}  // namespace kith
