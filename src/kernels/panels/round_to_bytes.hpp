// Rounding a vector of floats to signed bytes with one scale, and how far that is from the vector.
//
// Cost: two passes over the values.
#pragma once

#include <cstdint>

namespace kith {

struct RoundedVector {
  float scale = 0;     // x is about scale * bytes
  float residual = 0;  // at least the length of x - scale * bytes
  int32_t sum = 0;     // of the bytes
};

// Rounds a vector to words of four bytes, filled up with zeros; word w, with its bits `flip` flipped, goes to
// out + w * width * 4. Of a vector that is not finite nothing means anything, nor may a bound be claimed.
RoundedVector round_to_bytes(const float* vector, int64_t cols, int64_t width, uint32_t flip, int8_t* out);

}  // namespace kith
