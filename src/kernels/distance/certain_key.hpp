// When a double-precision product is enough: the proof behind distances on the matrix units.
//
// The reported key is the canonical sum S rounded to f32, 29 bits of a double away. Let P be the product q x and nq, nx
// the squared norms, each summed in double in any order: v = nq + nx - 2 P is another value of the same distance. With
// u = 2^-53 and d columns
//   P is within (d + 8) u |q| |x| of the true product, a rounding for each of d products and additions,
//   nq and nx are within (d + 8) u of themselves, and v adds three roundings of no more than 2 (nq + nx),
//   S is within (d / 16 + 8) u of the true distance, which is at most 2 (nq + nx).
// So |v - S| < (2.2 d + 50) u (nq + nx), and kSteps d + kSpare, which is larger, is left for how matrix units may group
// their additions. Where v - e and v + e round to the same f32, that is the reported key, and rounding alone decides
// that it is not: for about one pair in a hundred thousand, unless the vectors nearly agree. The same holds for an
// inner product with |q| |x| in the place of nq + nx. For cosine, where S is of vectors times their inverse norms, P
// may be the product of the plain ones times both inverse norms, and nq = nx = 1: an inverse norm is within
// (d / 32 + 6) u, a scaled value within u, so that the squared norms are 1 to within (d / 16 + 14) u and P is within
// (d + 12) u of that of the scaled vectors: together (2.4 d + 88) u, less than (2.2 d + 50) u (1 + 1). If a centre is
// subtracted from q and x first, each value is rounded a second time, which moves v by less than 8 u (nq + nx), where
// nq and nx are the norms of the differences. Pairs that stay uncertain are computed as in canonical.hpp.
#pragma once

#include "core/host_device.hpp"
#include "kernels/distance/canonical.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

struct CertainKey {
  float key = 0;
  bool certain = false;
};

inline constexpr double kCertainSteps = 4;
inline constexpr double kCertainSpare = 64;

// Relative error, to be multiplied by nq + nx, or by |q| |x| for an inner product.
KITH_HOST_DEVICE inline double certain_error(int64_t cols) {
  return (kCertainSteps * static_cast<double>(cols) + kCertainSpare) * 0x1p-53;
}

KITH_HOST_DEVICE inline CertainKey certain_between(double low, double high) {
  const float key = static_cast<float>(low);
  return {key, key == static_cast<float>(high)};
}

// An approximation to 1 / sqrt(value), to within 2^-21.
KITH_HOST_DEVICE inline float rough_inverse_root(float value) {
#if defined(__CUDA_ARCH__)
  return rsqrtf(value);
#else
  return 1.0f / std::sqrt(value);
#endif
}

// The f32 root shared by all v' in [v - error, v + error]; uncertain if v is too large or too small for an f32.
KITH_HOST_DEVICE inline CertainKey quick_root(double v, double error) {
  // One step of Newton's from a root that is right to within 2^-21 leaves less than 2^-41.
  const auto inverse = static_cast<double>(rough_inverse_root(static_cast<float>(v)));
  const double rough = v * inverse;
  const double root = fma(fma(-rough, rough, v), 0.5 * inverse, rough);
  const double slack = fma(root, 0x1p-40, error * inverse * 0.51);
  const CertainKey found = certain_between(root - slack, root + slack);
  const bool in_range = v > 1e-30 && v < 1e37 && error < v * 0x1p-20;
  return {found.key, found.certain && in_range};
}

KITH_HOST_DEVICE inline CertainKey certain_root(double v, double error) {
  const CertainKey quick = quick_root(v, error);
  if (quick.certain) return quick;
  const double low = v - error;
  const double high = v + error;
  if (low > 0) return certain_between(sqrt(low * (1 - 0x1p-48)), sqrt(high * (1 + 0x1p-48)));
  return {0.0f, low == 0 && high == 0};
}

// The key from a product, the squared norms and the error of the pair (certain_error times the factor named there). For
// cosine the product is of scaled vectors, and a zero vector has norm zero. `kQuick` is branchless, and therefore
// uncertain for some very large or very small distances.
template <KeyKind kKind, bool kQuick = false>
KITH_HOST_DEVICE inline CertainKey certain_key(double product, double nq, double nx, double error) {
  if constexpr (kKind == KeyKind::inner_product) return certain_between(-product - error, -product + error);
  const double v = fma(-2.0, product, nq + nx);
  if constexpr (kKind == KeyKind::l2) return kQuick ? quick_root(v, error) : certain_root(v, error);
  if constexpr (kKind == KeyKind::cosine) {
    const CertainKey found = certain_between(0.5 * (v - error), 0.5 * (v + error));
    const bool zero = nq == 0 || nx == 0;
    return {zero ? 1.0f : found.key, zero || found.certain};
  }
  return certain_between(v - error, v + error);
}

}  // namespace kith
