// What is known of operands once they are made: what the candidate window of a query is computed from.
#pragma once

#include "core/host_device.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

// Of one rounded vector, or of many together: upper bounds, in the scaled unit.
struct OperandFacts {
  float norm;
  float residual;  // of what was lost by rounding
};

// Of all rows of a base; on the device, zeroed before use. Floats are never negative, so that their bits order them.
struct BaseFacts {
  float sample_largest;  // magnitude in the sample, which gives the scale
  OperandFacts rows;     // the largest
  uint32_t unsure;       // not 0 where a row has no operand: not finite, or past the largest half
};

// Of one query.
struct QueryFacts {
  OperandFacts operand;
  float scale;
  uint32_t unsure;
  double squared_norm;
  double key_offset;
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

}  // namespace kith
