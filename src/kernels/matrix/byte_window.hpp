// Which rows a copy of them in bytes cannot rule out for one query: the proof behind screened_nearest_cuda.hpp.
//
// A row x (minus a centre, normalized, or unchanged) is stored as s b, with integers b up to 127 and a scale s per row;
// rounding moves it by at most `residual`. The query w likewise becomes t m, with integers m of 15 bits. p = <m, b> is
// exact to a few units of f32. By the triangle inequality the distance of w and x is within the sum of both residuals
// of that of t m and s b, whose square is t^2 |m|^2 + s^2 |b|^2 - 2 s t p; an inner product is within the residuals
// times the norms. The k-th smallest upper bound is a reach: rows certainly farther are no neighbours. Rounding keys to
// f32 can make a farther row tie, so byte_limit() is larger by that.
#pragma once

#include "core/host_device.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/candidate_window.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

inline constexpr int64_t kByteScreenMostCols = 4096;  // their sums of products fit 32 bits
inline constexpr int kByteCodeMost = 127;
inline constexpr int kQueryCodeMost = 127 * 128;  // as 128 h + l, with 8-bit integers h and l
inline constexpr double kByteLeast = 1e-30;       // smaller values are stored as 0
inline constexpr double kByteLargest = 1e15;      // rows with larger ones are not stored: squares might overflow f32
inline constexpr float kByteLoss = 0x1p-19f;   // f32 error of a square or a product, relative to both norms
inline constexpr float kByteTiny = 0x1p-120f;  // plus the error of numbers below f32's normal range

// Statistics of a row.
struct ByteRowBounds {
  float scale;     // s
  float square;    // s^2 |b|^2
  float residual;  // infinite: no bounds for this row
};

// Statistics of the query.
struct ByteQueryBounds {
  float scale;     // t
  float square;    // t^2 |m|^2
  float norm;      // at least the root of it
  float residual;  // infinite: no bounds
};

// From sums in float64: `lost` is the norm of x - s b, `values` the norm of the vector that x was computed from.
KITH_HOST_DEVICE inline float byte_residual(double lost, double values) {
  const double bound = lost * (1 + 0x1p-20) + values * 0x1p-50;
  return bound < kByteLargest ? static_cast<float>(bound * (1 + 0x1p-22)) + 0x1p-149f : HUGE_VALF;
}

// The scale of a row, from its largest magnitude; 0 if all its values are stored as 0.
KITH_HOST_DEVICE inline float byte_scale(double largest, int most) {
  return largest < kByteLeast ? 0.0f : static_cast<float>(largest / most);
}

struct ByteBounds {
  float lower;
  float upper;
};

// Bounds of the distance (of the key for inner_product); `product` is p. NaN if unknown.
KITH_HOST_DEVICE inline ByteBounds byte_bounds(KeyKind kind, const ByteQueryBounds& query, const ByteRowBounds& row,
                                               float product) {
  const float joined = row.scale * (query.scale * product);  // s t p
  if (kind == KeyKind::inner_product) {
    const float length = sqrtf(row.square) * (1 + 0x1p-22f) + 0x1p-74f;  // squares of very short rows round to 0
    const float error =
        (query.norm * row.residual + query.residual * (length + row.residual) + kByteLoss * query.norm * length) *
            (1 + 0x1p-20f) +
        fabsf(joined) * 0x1p-22f + kByteTiny;
    return {-joined - error, -joined + error};
  }
  const float squares = query.square + row.square;
  const float square = squares - 2 * joined;
  const float error = kByteLoss * squares + kByteTiny;
  const float moved = (row.residual + query.residual) * (1 + 0x1p-22f);
  const float nearest = sqrtf(fmaxf(square - error, 0.0f)) * (1 - 0x1p-22f) - moved;
  const float farthest = sqrtf(fmaxf(square + error, 0.0f)) * (1 + 0x1p-22f) + moved;
  return {nearest - fabsf(nearest) * 0x1p-22f, farthest + farthest * 0x1p-22f};
}

// The largest lower bound of a neighbour, if k rows have upper bounds up to `reach`; NaN if there is no
// bound.
KITH_HOST_DEVICE inline float byte_limit(KeyKind kind, float reach) {
  if (!(fabsf(reach) < static_cast<float>(kLargestReach))) return NAN;
  const double far = reach;
  double limit = 0;
  if (kind == KeyKind::inner_product) {
    limit = far + fabs(far) * kKeyLoss + kTinyKey;
  } else {
    limit = sqrt(far * far * (1 + kKeyLoss) + kTinyKey) + (kind == KeyKind::cosine ? kUnitLoss : 0x1p-148);
  }
  return static_cast<float>(limit + fabs(limit) * 0x1p-22 + 0x1p-147);
}

}  // namespace kith
