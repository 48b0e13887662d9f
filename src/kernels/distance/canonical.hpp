// The distance that Kith reports: one definition, the same bits on every processor.
//
// Values are widened to double. Sixteen lanes accumulate with fused multiply-adds, lane j taking elements j, j + 16,
// j + 32, ...; the lanes are added by a fixed tree (8, 4, 2, 1 apart); the sum is rounded once to f32. Vector code and
// CUDA may do the lanes in any arrangement: the operations of a lane, and so the bits, are the same. Adding zeros past
// the last element changes nothing.
//
//   squared_l2     sum (q - x)^2
//   l2             its root, taken before the rounding: neither large nor small distances are lost in the square
//   inner_product  -(sum q x)
//   cosine         1/2 sum (q / |q| - x / |x|)^2, which is 1 - cos without its cancellation; 1 where a vector is zero
//   l1             sum |q - x|
//   linf           max |q - x|, the lanes joined by the larger one; a NaN wins
//   chi_square     sum (q - x)^2 / (q + x), an element with q + x = 0 adding nothing
//   hamming        the bits that differ, counted
//
// Cost: one double fma and up to three multiplications or subtractions for each element; a division for chi_square.
#pragma once

#include <kith/metric.hpp>

#include "core/host_device.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

enum class KeyKind : uint8_t { l2, squared_l2, inner_product, cosine, l1, linf, chi_square, hamming };

// Whether a matrix product gives the key, up to terms of one vector alone.
KITH_HOST_DEVICE constexpr bool is_product(KeyKind kind) { return kind <= KeyKind::cosine; }

// Whether the key is |q|^2 + |x|^2 - 2 q x or its root, so that moving all vectors changes nothing.
KITH_HOST_DEVICE constexpr bool has_differences(KeyKind kind) {
  return kind == KeyKind::l2 || kind == KeyKind::squared_l2;
}

KITH_HOST_DEVICE constexpr KeyKind key_kind(Metric metric) {
  switch (metric) {
    case Metric::inner_product: return KeyKind::inner_product;
    case Metric::cosine: return KeyKind::cosine;
    case Metric::sqeuclidean: return KeyKind::squared_l2;
    case Metric::l1: return KeyKind::l1;
    case Metric::linf: return KeyKind::linf;
    case Metric::chi_square: return KeyKind::chi_square;
    case Metric::hamming: return KeyKind::hamming;
    default: return KeyKind::l2;
  }
}

inline constexpr int kCanonicalLanes = 16;

// Calls use(KindTag<kind>()), so that code is compiled for each kind.
template <KeyKind kKind>
struct KindTag {
  static constexpr KeyKind kind = kKind;
};

template <typename Use>
decltype(auto) visit_kind(KeyKind kind, Use&& use) {
  switch (kind) {
    case KeyKind::squared_l2: return use(KindTag<KeyKind::squared_l2>());
    case KeyKind::inner_product: return use(KindTag<KeyKind::inner_product>());
    case KeyKind::cosine: return use(KindTag<KeyKind::cosine>());
    case KeyKind::l1: return use(KindTag<KeyKind::l1>());
    case KeyKind::linf: return use(KindTag<KeyKind::linf>());
    case KeyKind::chi_square: return use(KindTag<KeyKind::chi_square>());
    case KeyKind::hamming: return use(KindTag<KeyKind::hamming>());
    default: return use(KindTag<KeyKind::l2>());
  }
}

KITH_HOST_DEVICE constexpr int differing_bits(uint32_t a, uint32_t b) {
  uint32_t bits = a ^ b;
  int count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}

// Combines two lanes, or a lane and a new element.
template <KeyKind kKind>
KITH_HOST_DEVICE inline double canonical_join(double a, double b) {
  if constexpr (kKind == KeyKind::linf) return b > a || b != b ? b : a;
  return a + b;
}

// Adds one element to its lane. Only cosine uses the inverse norms.
template <KeyKind kKind>
KITH_HOST_DEVICE inline double canonical_step(double lane, double q, double x, double inverse_q, double inverse_x) {
  if constexpr (kKind == KeyKind::inner_product) {
    return fma(q, x, lane);
  } else if constexpr (kKind == KeyKind::cosine) {
    const double difference = q * inverse_q - x * inverse_x;
    return fma(difference, difference, lane);
  } else if constexpr (kKind == KeyKind::l1 || kKind == KeyKind::linf) {
    return canonical_join<kKind>(lane, fabs(q - x));
  } else if constexpr (kKind == KeyKind::chi_square) {
    const double difference = q - x;
    const double sum = q + x;
    return sum == 0.0 ? lane : lane + difference * difference / sum;
  } else if constexpr (kKind == KeyKind::hamming) {
    return lane + differing_bits(static_cast<uint32_t>(q), static_cast<uint32_t>(x));
  } else {
    const double difference = q - x;
    return fma(difference, difference, lane);
  }
}

template <KeyKind kKind = KeyKind::squared_l2>
KITH_HOST_DEVICE inline double canonical_tree(double (&lanes)[kCanonicalLanes]) {
  for (int apart = kCanonicalLanes / 2; apart > 0; apart /= 2) {
    for (int j = 0; j < apart; ++j) lanes[j] = canonical_join<kKind>(lanes[j], lanes[j + apart]);
  }
  return lanes[0];
}

// The key of a finished sum. An inverse norm of 0 stands for a zero vector.
template <KeyKind kKind>
KITH_HOST_DEVICE inline float canonical_key(double sum, double inverse_q, double inverse_x) {
  if constexpr (kKind == KeyKind::inner_product) {
    return static_cast<float>(-sum);
  } else if constexpr (kKind == KeyKind::cosine) {
    return inverse_q == 0.0 || inverse_x == 0.0 ? 1.0f : static_cast<float>(0.5 * sum);
  } else if constexpr (kKind == KeyKind::l2) {
    return static_cast<float>(sqrt(sum));
  } else {
    return static_cast<float>(sum);
  }
}

// 1 / |x| from the canonical sum of x x; 0 for the zero vector, NaN where the norm is not finite.
KITH_HOST_DEVICE inline double canonical_inverse_norm(double squared_norm) {
  if (squared_norm == 0.0) return 0.0;
  return squared_norm < HUGE_VAL ? 1.0 / sqrt(squared_norm) : NAN;
}

// Reference implementations, one pair at a time; the vectorised kernels are tested against them.
template <typename T>
KITH_HOST_DEVICE double canonical_squared_norm(const T* x, int64_t cols) {
  double lanes[kCanonicalLanes] = {};
  for (int64_t i = 0; i < cols; ++i) {
    const double value = static_cast<double>(x[i]);
    lanes[i % kCanonicalLanes] = fma(value, value, lanes[i % kCanonicalLanes]);
  }
  return canonical_tree(lanes);
}

template <KeyKind kKind, typename Q, typename X>
KITH_HOST_DEVICE float canonical_pair(const Q* q, const X* x, int64_t cols) {
  double inverse_q = 0.0;
  double inverse_x = 0.0;
  if constexpr (kKind == KeyKind::cosine) {
    inverse_q = canonical_inverse_norm(canonical_squared_norm(q, cols));
    inverse_x = canonical_inverse_norm(canonical_squared_norm(x, cols));
  }
  double lanes[kCanonicalLanes] = {};
  for (int64_t i = 0; i < cols; ++i) {
    double& lane = lanes[i % kCanonicalLanes];
    lane = canonical_step<kKind>(lane, static_cast<double>(q[i]), static_cast<double>(x[i]), inverse_q, inverse_x);
  }
  return canonical_key<kKind>(canonical_tree<kKind>(lanes), inverse_q, inverse_x);
}

}  // namespace kith
