// A random orthonormal matrix: Gaussian rows made orthonormal. The same bits for a seed on every machine.
#pragma once

#include <kith/resources.hpp>

#include "core/random.hpp"
#include "kernels/dense/dense.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

// The natural logarithm of a positive number, from operations that every processor rounds alike; C libraries differ in
// the last bit. Accurate to a few units in the last place.
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

// The i-th pair of normal numbers: by Marsaglia's polar method, with the logarithm above.
struct NormalPair {
  double first = 0;
  double second = 0;
};
NormalPair normal_pair(const CounterRng& rng, uint64_t i);

// out x in. With out <= in its rows are orthonormal, else its columns, so that lengths are kept.
Dense random_rotation(int64_t in, int64_t out, uint64_t seed, const Resources& resources);
inline Footprint random_rotation_footprint(int64_t in, int64_t out) {
  return array_footprint<double>(in, out).times(out <= in ? 2 : 3);
}

}  // namespace kith
