// Vectors as the matrix units take them, and their products computed as badly as the bounds of candidate_window.hpp
// allow for: each addition truncated.
#pragma once

#include "core/half.hpp"
#include "kernels/matrix/operand_bounds.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kith {

// Towards zero, as the matrix units' sums are.
inline float truncated(double value) {
  const auto rounded = static_cast<float>(value);
  return std::abs(static_cast<double>(rounded)) > std::abs(value) ? std::nextafter(rounded, 0.0f) : rounded;
}

// A vector rounded to halves, as operands_cuda.cu does it.
struct RoundedOperand {
  std::vector<float> values;
  float squares = 0;
  double true_square = 0;
  OperandBounds bounds = {0, 0};

  RoundedOperand(const float* from, const std::vector<float>& centre, double factor, float scale, int64_t cols)
      : values(static_cast<size_t>(cols)) {
    double residuals = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      float value = from[i] - centre[i];
      if (factor != 1) value = static_cast<float>(static_cast<double>(value) * factor);
      value *= scale;
      true_square += static_cast<double>(value) * static_cast<double>(value) * (1 + 0x1p-21);
      values[i] = static_cast<float>(half_of(value));
      squares += values[i] * values[i];
      const double residual = static_cast<double>(value) - static_cast<double>(values[i]);
      residuals += residual * residual;
    }
    bounds.norm = std::sqrt(squares) * 1.0002f;
    bounds.residual = static_cast<float>(std::sqrt(residuals)) * 1.0002f + bounds.norm * 2.4e-7f + 1e-30f;
  }
};

inline float truncated_product(const RoundedOperand& q, const RoundedOperand& x) {
  float sum = 0;
  for (size_t i = 0; i < q.values.size(); ++i) {
    sum = truncated(static_cast<double>(sum) - static_cast<double>(q.values[i]) * static_cast<double>(x.values[i]));
  }
  return sum;
}

}  // namespace kith
