// Values on their way to halves of the matrix units, and what is measured of a vector meanwhile: its rounded norm and
// what rounding has moved it by (candidate_window.hpp). A dozen instructions for two values: base and queries of a
// search pass here, and time would else be that of the arithmetic.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/operand_bounds.hpp"

#include <cuda_fp16.h>

#include <cstdint>

namespace kith {

// What of a vector is rounded: itself, its difference from a centre, or itself of length 1.
enum class Form { plain, centred, unit };

constexpr Form form_of(KeyKind kind) {
  return kind == KeyKind::inner_product ? Form::plain : kind == KeyKind::cosine ? Form::unit : Form::centred;
}

struct HalfSums {
  float squares = 0;
  double true_squares = 0;  // of what is rounded
  float residual_squares = 0;

  // Whether no value is past the largest half, infinite or not a number: its square would be neither a number nor
  // below infinity, which sums of squares of halves do not reach.
  __device__ bool inside() const { return squares - squares == 0.0f; }
};

// What is rounded of a value, as the form asks.
template <Form kForm>
__device__ __forceinline__ float formed(float value, float centre, double inverse_norm, float scale) {
  if constexpr (kForm == Form::centred) value -= centre;
  if constexpr (kForm == Form::unit) value = static_cast<float>(static_cast<double>(value) * inverse_norm);
  return value * scale;
}

// Two values that are formed as halves, the first in the low bits. Adds them to the sums; `kTrue`: to the squares of
// what is rounded, too.
template <bool kTrue>
__device__ __forceinline__ uint32_t round_halves(float first, float second, HalfSums& sums) {
  const __half2 rounded = __floats2half2_rn(first, second);
  const float2 back = __half22float2(rounded);
  sums.squares = fmaf(back.y, back.y, fmaf(back.x, back.x, sums.squares));
  if constexpr (kTrue) {
    sums.true_squares = fma(static_cast<double>(first), static_cast<double>(first), sums.true_squares);
    sums.true_squares = fma(static_cast<double>(second), static_cast<double>(second), sums.true_squares);
  }
  const float residuals[2] = {first - back.x, second - back.y};
  sums.residual_squares = fmaf(residuals[1], residuals[1], fmaf(residuals[0], residuals[0], sums.residual_squares));
  return *reinterpret_cast<const uint32_t*>(&rounded);
}

// Upper bounds. The residual is that of the rounding and, 2^-24 of each value twice over, of centring or scaling.
__device__ inline OperandBounds bounds_of(const HalfSums& sums, int64_t cols) {
  const float slack = 1.0001f + static_cast<float>(cols) * 1e-7f;
  const float norm = sqrtf(sums.squares) * slack;
  return {norm, sqrtf(sums.residual_squares) * slack + norm * 2.4e-7f + 1e-30f};
}

// `value` is not negative.
__device__ inline void raise(float* place, float value) { atomicMax(vectors<int>(place), __float_as_int(value)); }

}  // namespace kith
