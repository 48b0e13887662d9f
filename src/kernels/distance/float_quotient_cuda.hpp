// n / s, rounded as IEEE 754 says, for the double-precision units: what the compiler makes of a division, but for the
// branch to numbers whose quotients leave the normal range. Values are widened floats, n the square of a difference and
// s a sum of two, so that there are none: n is 0 or at least 2^-298, s at least 2^-149 and below 2^130. Without
// branches many divisions are under way at a time, where a thread has many; each takes eight instructions of these
// units.
//
// An approximate reciprocal of some 20 bits gets two steps of Newton's iteration, of third and second order, and the
// quotient one (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990).
// What is not finite becomes NaN, as inf / inf does; s = 0 gives NaN.
#pragma once

#include "cuda/device_core.hpp"
#ifdef __CUDACC__
#include "cuda/ptx.hpp"
#endif

#include <cmath>

namespace kith {

KITH_DEVICE_INLINE double float_quotient(double n, double s) {
#ifdef __CUDA_ARCH__
  double inverse = ptx::rough_inverse(s);
  double error = fma(-s, inverse, 1.0);
  error = fma(error, error, error);
  inverse = fma(inverse, error, inverse);
  error = fma(-s, inverse, 1.0);
  inverse = fma(inverse, error, inverse);
  const double quotient = n * inverse;
  return fma(inverse, fma(-s, quotient, n), quotient);
#else
  return n / s;
#endif
}

}  // namespace kith
