// PTX of the double-precision units (see ptx.hpp).
#pragma once

namespace kith::ptx {

// 1 / x to some 20 bits, for normal numbers whose inverse is normal too.
__device__ inline double rough_inverse(double x) {
  double inverse;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(inverse) : "d"(x));
  return inverse;
}

}  // namespace kith::ptx
