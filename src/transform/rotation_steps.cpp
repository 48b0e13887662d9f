#include "transform/rotation_steps.hpp"

#include <algorithm>
#include <cmath>

namespace kith {

void take_nearest_rotation(RotationSteps& steps) {
  constexpr float kShare = 0x1p-22f;  // of the rotation before
  // Steps come in bursts, at the end of which singular values are 1 that were from `kLeast` to 1 at the beginning;
  // smaller ones have grown by some thousand.
  constexpr int kMostBursts = 5;
  constexpr double kLeast = 0x1p-13;
  constexpr double kNearlyOne = 0.99999;
  // Steps are scaled as if no singular value were below this: then none that is near 1 becomes small on its way.
  constexpr double kCushion = 0.1;
  constexpr double kClose = 0.05;  // of which a step leaves a hundredth
  const auto refine = [&](double least) {
    const double scale = std::sqrt(3 / (1 + least + least * least));
    steps.refine_nearest(static_cast<float>(1.5 * scale), static_cast<float>(-0.5 * scale * scale * scale));
    return scale;
  };
  steps.begin_nearest(kShare);
  for (int burst = 0; burst < kMostBursts; ++burst) {
    for (double least = kLeast; least < kNearlyOne;) {
      steps.square_nearest();
      const double scale = refine(std::max(least, kCushion));
      least *= 1.5 * scale - 0.5 * scale * scale * scale * least * least;
    }
    steps.square_nearest();
    const double departure = steps.departure();
    refine(1);
    if (std::sqrt(departure) <= kClose) return steps.take_nearest();
  }
}

double scale_of_variance(double variance) { return std::ldexp(1.0, variance > 0 ? -(std::ilogb(variance) / 2) : 0); }

float scale_of_bound(double largest_row_sum) {
  constexpr double kRounding = 1.01;
  return largest_row_sum > 0 ? static_cast<float>(1 / (std::sqrt(largest_row_sum) * kRounding)) : 0.0f;
}

}  // namespace kith
