// Rows in separate clusters, for calls whose time goes by clusters: 500 centres drawn from N(0,1) in each
// dimension, and rows at a distance of 0.5 N(0,1) from one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

inline std::vector<float> rows_around_centres(int64_t rows, int64_t cols, std::mt19937& random) {
  constexpr int64_t kCentres = 500;
  std::normal_distribution<float> normal;
  std::vector<float> centres(static_cast<size_t>(kCentres * cols));
  for (float& value : centres) value = normal(random);
  std::vector<float> values(static_cast<size_t>(rows * cols));
  for (int64_t i = 0; i < rows; ++i) {
    const auto centre = static_cast<int64_t>(random() % kCentres);
    for (int64_t j = 0; j < cols; ++j) {
      values[static_cast<size_t>(i * cols + j)] =
          centres[static_cast<size_t>(centre * cols + j)] + 0.5F * normal(random);
    }
  }
  return values;
}
