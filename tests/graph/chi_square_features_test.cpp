#include "graph/lists/pairs/chi_square_features.hpp"

#include "core/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kith {
namespace {

// The kernel of the features, and the one that it bounds.
double kernel(double t) { return 0.64 + 0.36 * std::cos(kChiSquareFrequency * t); }

TEST(ChiSquareFeatures, KernelIsNeverBelowThatOfTheDistance) {
  // Beyond the last t the least that the kernel can be is enough. Between two the difference changes by no more than its
  // steepest slope (0.27 + 0.5) allows; near 0 both are even, and fourth derivatives are below 1.
  constexpr double kLast = 3.94;
  constexpr double kStep = 1e-5;
  EXPECT_LT(1 / std::cosh(kLast / 2), 0.64 - 0.36);
  EXPECT_GT(1.0 / 8, 0.36 * kChiSquareFrequency * kChiSquareFrequency / 2);
  for (double t = 0.1; t < kLast; t += kStep) ASSERT_GT(kernel(t) - 1 / std::cosh(t / 2), kStep) << t;
}

TEST(ChiSquareFeatures, DistanceIsNeverAboveChiSquare) {
  const CounterRng rng(5, 1);
  constexpr int64_t kCols = 24;
  ChiSquareFeatures map;
  double closest = 0;
  for (uint64_t turn = 0; turn < 4000; ++turn) {
    std::vector<float> a;
    std::vector<float> b;
    for (uint64_t c = 0; c < kCols; ++c) {
      const auto draw = [&](uint64_t i) { return static_cast<float>(rng.below(turn * 100 + i, 300)); };
      const float unit = turn % 5 == 0 ? std::ldexp(1.0f, static_cast<int>(rng.below(turn * 100 + c + 50, 200)) - 100) : 1.0f;
      a.push_back(std::max(0.0f, draw(c) - 60) * unit);
      b.push_back(turn % 3 == 0 ? a.back() * (1 + draw(c + 25) / 300) : std::max(0.0f, draw(c + 25) - 60));
    }
    std::vector<float> of_a(kChiSquareFeatures * kCols);
    std::vector<float> of_b(kChiSquareFeatures * kCols);
    map.of(a.data(), kCols, of_a.data());
    map.of(b.data(), kCols, of_b.data());
    double chi_square = 0;
    double squared = 0;
    double norms = 0;
    for (size_t c = 0; c < a.size(); ++c) {
      const double sum = static_cast<double>(a[c]) + b[c];
      if (sum > 0) chi_square += std::pow(static_cast<double>(a[c]) - b[c], 2) / sum;
      norms += sum;
    }
    for (size_t c = 0; c < of_a.size(); ++c) squared += std::pow(static_cast<double>(of_a[c]) - of_b[c], 2);
    ASSERT_LE(squared, chi_square + 8 * 0x1p-24 * norms) << turn;
    if (chi_square > 0) closest = std::max(closest, squared / chi_square);
  }
  EXPECT_GT(closest, 0.7);
}

TEST(ChiSquareFeatures, ZeroHasNoneAndInfinityShows) {
  const float row[] = {0.0f, -0.0f, 1.0f, std::numeric_limits<float>::infinity()};
  float out[12];
  ChiSquareFeatures map;
  map.of(row, 4, out);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(out[i], 0.0f);
  EXPECT_EQ(out[6], 0.8f);
  EXPECT_EQ(out[7], 0.6f);
  EXPECT_EQ(out[8], 0.0f);
  EXPECT_FALSE(std::isfinite(out[9]));
}

}  // namespace
}  // namespace kith
