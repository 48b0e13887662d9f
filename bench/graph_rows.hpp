// Rows for benches of graph indexes: Gaussian of 24 dimensions that become ever narrower, turned into more, with some
// noise, in bytes or f32. At 80,000 rows a graph finds as much of their neighbours as of SIFT's with an equal beam.
#pragma once

#include <kith/view.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

namespace kith::bench {

struct Rows {
  std::vector<float> floats;
  std::vector<uint8_t> bytes;
  int64_t cols = 0;

  MatrixView view() const {
    if (!bytes.empty()) return {bytes.data(), DType::u8, {static_cast<int64_t>(bytes.size()) / cols, cols, cols}};
    return {floats.data(), DType::f32, {static_cast<int64_t>(floats.size()) / cols, cols, cols}};
  }
};

inline Rows made_rows(int64_t count, int64_t cols, uint64_t seed, bool floats) {
  constexpr int64_t kRank = 24;
  std::mt19937_64 shared(1);
  std::normal_distribution<float> normal;
  std::vector<float> basis(static_cast<size_t>(kRank * cols));
  for (float& value : basis) value = normal(shared);
  double squares = 0;
  for (int64_t j = 0; j < kRank; ++j) squares += std::pow(static_cast<double>(j + 1), -1.4);
  for (int64_t j = 0; j < kRank; ++j) {
    const auto scale = static_cast<float>(40 / std::sqrt(squares) * std::pow(static_cast<double>(j + 1), -0.7));
    for (int64_t c = 0; c < cols; ++c) basis[static_cast<size_t>(j * cols + c)] *= scale;
  }
  Rows rows;
  rows.cols = cols;
  (floats ? rows.floats.resize(static_cast<size_t>(count * cols))
          : rows.bytes.resize(static_cast<size_t>(count * cols)));
  std::vector<std::thread> threads;
  constexpr int64_t kParts = 64;
  for (int64_t part = 0; part < kParts; ++part) {
    threads.emplace_back([&, part] {
      std::mt19937_64 random(seed * 1000 + static_cast<uint64_t>(part));
      std::normal_distribution<float> draw;
      std::vector<float> row(static_cast<size_t>(cols));
      for (int64_t i = part; i < count; i += kParts) {
        for (float& value : row) value = 110 + 4 * draw(random);
        for (int64_t j = 0; j < kRank; ++j) {
          const float z = draw(random);
          for (int64_t c = 0; c < cols; ++c)
            row[static_cast<size_t>(c)] += z * basis[static_cast<size_t>(j * cols + c)];
        }
        for (int64_t c = 0; c < cols; ++c) {
          const float value = row[static_cast<size_t>(c)];
          const auto at = static_cast<size_t>(i * cols + c);
          if (floats) {
            rows.floats[at] = value;
          } else {
            rows.bytes[at] = static_cast<uint8_t>(std::clamp(std::round(value), 0.0F, 255.0F));
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return rows;
}

}  // namespace kith::bench
