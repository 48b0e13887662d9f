// Vectors rounded to whole numbers times a scale, as a copy of rows in bytes and its queries are kept, and what the
// rounding loses (matrix/byte_window.hpp).
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/warp.hpp"
#include "kernels/distance/load_four_cuda.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// Column `col` of a rounded vector, and the value it was rounded from.
struct KeptValue {
  double value;
  double from;
};

__device__ inline KeptValue kept_value(const void* row, DType dtype, int64_t col, const float* centre, double inverse) {
  const double x = stored_value(static_cast<const std::byte*>(row), dtype, col);
  if (centre != nullptr) return {x - centre[col], fabs(x) + fabs(static_cast<double>(centre[col]))};
  return {x * inverse, fabs(x * inverse)};
}

__device__ inline double warp_largest_double(double value) {
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) {
    const double other = __shfl_xor_sync(kAllLanes, value, apart);
    value = other > value || other != other ? other : value;  // NaN wins
  }
  return value;
}

// Whole numbers of up to `most` for the columns that a thread has, and the sums of these columns.
struct Rounding {
  float scale;  // 0 rounds everything to zero
  double most;
  double lost = 0;    // sum of squared rounding errors
  double from = 0;    // sum of squares before rounding
  double square = 0;  // sum of squares of the whole numbers

  __device__ int round(const KeptValue& kept) {
    int code = 0;
    if (scale > 0) code = static_cast<int>(fmax(fmin(rint(kept.value / scale), most), -most));
    const double apart = kept.value - static_cast<double>(scale) * code;
    lost = fma(apart, apart, lost);
    from = fma(kept.from, kept.from, from);
    square += static_cast<double>(code) * code;
    return code;
  }
};

}  // namespace kith
