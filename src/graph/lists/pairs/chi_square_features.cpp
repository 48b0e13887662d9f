#include "graph/lists/pairs/chi_square_features.hpp"

#include "core/half.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

// In float64, so that each is rounded once.
std::array<float, kChiSquareFeatures> features_of(float value) {
  if (value == 0) return {};
  const auto x = static_cast<double>(value);
  const double root = std::sqrt(x);
  const double angle = kChiSquareFrequency * std::log(x);
  return {static_cast<float>(0.8 * root), static_cast<float>(0.6 * root * std::cos(angle)),
          static_cast<float>(0.6 * root * std::sin(angle))};
}

}  // namespace

void ChiSquareFeatures::of(const float* row, int64_t cols, float* out) {
  for (int64_t c = 0; c < cols; ++c, out += kChiSquareFeatures) {
    const uint32_t bits = bits_of_float(row[c]);
    Met& met = met_[bits * 0x9E3779B1u >> (32 - kMetBits)];
    if (met.bits != bits) met = {bits, features_of(row[c])};
    std::copy_n(met.features.data(), kChiSquareFeatures, out);
  }
}

}  // namespace kith
