// The natural logarithm of a positive number from operations that every processor rounds alike; those of C libraries
// differ in the last bit. Right to a few units of it.
#pragma once

#include <cmath>

namespace kith {

inline double logarithm(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double z = (m - 1) / (m + 1);
  const double square = z * z;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return 2 * z * sum + exponent * 0.69314718055994531;
}

}  // namespace kith
