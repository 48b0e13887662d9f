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

#include "cuda/device_core.hpp"
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

// Reads one code.
class SignReader {
 public:
  KITH_HOST_DEVICE SignReader(const CodecView& codec, const uint8_t* code)
      : centre_(codec.codewords), code_(code), cols_(codec.format.cols), step_(sign_step(codec.format, code)) {}

  KITH_HOST_DEVICE float value(int64_t c) const {
    return sign_value(centre_[c], sub_code(code_, c, 1) != 0, step_);
  }

  // Columns first .. first + 3, which are half a byte; those past the last are left as they are.
  KITH_DEVICE void four(int first, float (&values)[4]) const {
    const int cols = static_cast<int>(cols_);
    const uint32_t signs = static_cast<uint32_t>(code_[first / 8]) >> (first % 8);
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (first + i < cols) values[i] = sign_value(centre_[first + i], (signs >> i & 1u) != 0, step_);
    }
  }

  // All columns on the CPU, eight to a byte, which compilers vectorize. Inlined into code for each instruction set.
  [[gnu::always_inline]] void all(float* out) const {
    int64_t c = 0;
    for (; c + 8 <= cols_; c += 8) {
      const uint32_t byte = code_[c / 8];
      for (uint32_t i = 0; i < 8; ++i) out[c + i] = sign_value(centre_[c + i], (byte >> i & 1u) != 0, step_);
    }
    for (; c < cols_; ++c) out[c] = value(c);
  }

  // |y|^2, without the codec's centre.
  KITH_HOST_DEVICE double own_square() const {
    return static_cast<double>(step_) * static_cast<double>(step_) * static_cast<double>(cols_);
  }

 private:
  const float* centre_;
  const uint8_t* code_;
  int64_t cols_;
  float step_;
};

}  // namespace kith
