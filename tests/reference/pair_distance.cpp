#include "reference/pair_distance.hpp"

#include "kernels/distance/canonical.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kith::reference {
namespace {

template <KeyKind kKind>
float pair(const float* q, const float* x, int64_t cols) {
  return canonical_pair<kKind>(q, x, cols);
}

#if defined(__x86_64__)
template <KeyKind kKind>
__attribute__((target("fma"), flatten)) float pair_with_fma(const float* q, const float* x, int64_t cols) {
  return canonical_pair<kKind>(q, x, cols);
}

const bool has_fma = __builtin_cpu_supports("fma");
#endif

}  // namespace

double distance(Metric metric, const float* q, const float* x, int64_t cols) {
  double squares = 0, product = 0, qq = 0, xx = 0, absolute = 0, largest = 0, chi = 0, bits = 0;
  for (int64_t i = 0; i < cols; ++i) {
    const auto a = static_cast<double>(q[i]);
    const auto b = static_cast<double>(x[i]);
    squares += (a - b) * (a - b);
    product += a * b;
    qq += a * a;
    xx += b * b;
    absolute += std::abs(a - b);
    largest = std::max(largest, std::abs(a - b));
    if (a + b != 0) chi += (a - b) * (a - b) / (a + b);
    if (metric == Metric::hamming)
      bits += std::popcount(static_cast<unsigned>(static_cast<int>(a) ^ static_cast<int>(b)));
  }
  switch (metric) {
    case Metric::l2: return std::sqrt(squares);
    case Metric::sqeuclidean: return squares;
    case Metric::inner_product: return product;
    case Metric::cosine: return qq == 0 || xx == 0 ? 1.0 : 1.0 - product / std::sqrt(qq * xx);
    case Metric::l1: return absolute;
    case Metric::linf: return largest;
    case Metric::chi_square: return chi;
    case Metric::hamming: return bits;
  }
  return 0;
}

float canonical(Metric metric, const float* q, const float* x, int64_t cols) {
  return visit_kind(key_kind(metric), [&](auto tag) {
#if defined(__x86_64__)
    if (has_fma) return pair_with_fma<tag.kind>(q, x, cols);
#endif
    return pair<tag.kind>(q, x, cols);
  });
}

}  // namespace kith::reference
