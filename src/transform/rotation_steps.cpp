#include "transform/rotation_steps.hpp"

#include <algorithm>
#include <cmath>

namespace kith {

void take_nearest_rotation(RotationSteps& steps) {
  constexpr float kShare = 0x1p-22f;  // of the rotation before
  constexpr int kMostSteps = 48;      // 23 are common
  constexpr double kNearlyOne = 0.999;
  constexpr float kClose = 1e-4f;
  // Steps are scaled as if no singular value were below this: then none that is near 1 becomes small on its way.
  constexpr double kCushion = 0.1;
  steps.begin_nearest(kShare);
  double least = kShare / 2;  // all singular values are from here to 1, but in odd cases
  for (int step = 0; step < kMostSteps; ++step) {
    steps.square_nearest();
    if (least > kNearlyOne && steps.departure() <= kClose) return steps.take_nearest();
    const double cushioned = std::max(least, kCushion);
    const double scale = std::sqrt(3 / (1 + cushioned + cushioned * cushioned));
    const double cubed = scale * scale * scale;
    steps.refine_nearest(static_cast<float>(1.5 * scale), static_cast<float>(-0.5 * cubed));
    least = std::min(1.0, least * (1.5 * scale - 0.5 * cubed * least * least));
  }
}

double scale_of_variance(double variance) {
  return std::ldexp(1.0, variance > 0 ? -(std::ilogb(variance) / 2) : 0);
}

float scale_of_bound(double largest_row_sum) {
  constexpr double kRounding = 1.01;
  return largest_row_sum > 0 ? static_cast<float>(1 / (std::sqrt(largest_row_sum) * kRounding)) : 0.0f;
}

}  // namespace kith
