// Bounds measured while operands are made, from which the candidate window of a query is computed.
#pragma once

#include "core/host_device.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

// Upper bounds for one rounded vector, or for many, in the scaled unit.
struct OperandBounds {
  float norm;
  float residual;  // norm of the rounding error
};

// Bounds over all rows of a base. Zero it on the device before use; floats are non-negative, so their bits order them.
struct BaseBounds {
  float sample_largest;  // largest magnitude in the sample, which determines the scale
  OperandBounds rows;     // maxima over rows that are not far
  uint32_t unsure;       // not 0 if a row has no operand: not finite, or beyond the largest half
  float ordinary = 0;    // the sample's largest norm, in the scaled unit, if far rows are separated; else 0
  uint32_t has_far = 0;  // not 0 if some row is far
};

// Bounds and scale of one query.
struct QueryOperand {
  OperandBounds operand;
  float scale;
  uint32_t unsure;
  double squared_norm;
  double key_offset;
  double true_square = HUGE_VAL;  // upper bound of the squared norm before rounding; infinite: unknown
};

// The power of two that the values of a base are multiplied by: its sample's largest becomes 8 to 16, which leaves room
// above for rows that are not in the sample and loses nothing below.
KITH_HOST_DEVICE inline float operand_scale(float sample_largest) {
  constexpr int kExponent = 3;
  constexpr int kFurthest = 100;
  if (!(sample_largest > 0)) return 1.0f;
  const int exponent = kExponent - ilogbf(sample_largest);
  return ldexpf(1.0f, exponent > kFurthest ? kFurthest : exponent < -kFurthest ? -kFurthest : exponent);
}

// Far rows: a few that are much longer than the others would make every bound that holds for all rows useless. So a row
// beyond kFarRow times the ordinary norm has no operand but zeros, and its term is a lower bound of its value for every
// query of up to kFarQuery times that norm: by the triangle inequality (candidate_window.hpp) a row of norm x within
// reach of a query of norm q has a threshold of at least (x - q)^2 / 2 - q^2 / 2. The products of longer queries are
// not sure, and neither is a k-th value that a far row could have given.
inline constexpr float kFarRow = 6;
inline constexpr float kFarQuery = 2;

// Rounded down, minus the distance by which rounding moved the query.
KITH_HOST_DEVICE inline float far_term(double norm, float ordinary) {
  constexpr double kLess = 0x1p-10;
  constexpr double kLargest = 3e38;
  const double query = double{kFarQuery} * ordinary;
  const double term = norm * (norm * (1 - kLess) / 2 - query * (1 + kLess)) - 2 * kLess * query * query;
  return static_cast<float>(term < kLargest ? term * (1 - kLess) : kLargest);
}

// A lower bound of all far rows' terms.
KITH_HOST_DEVICE inline float far_floor(float ordinary) {
  return far_term(double{kFarRow} * ordinary, ordinary) * (1 - 0x1p-10f);
}

}  // namespace kith
