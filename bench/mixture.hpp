// Vectors with clusters, for sizes with no real data: 2,000 centres of 40 |N(0,1)| in each dimension; a point is a
// random centre + 3 N(0,1) + z B with z ~ N(0,1)^16 and B a fixed 16 x d matrix of 6 N(0,1).
#pragma once

#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

class Mixture {
 public:
  explicit Mixture(int64_t cols) : cols_(cols), centres_(fill(kCentres * cols, 1)), factors_(fill(kFactors * cols, 2)) {
    for (float& value : centres_) value = 40 * std::abs(value);
    for (float& value : factors_) value *= 6;
  }

  std::vector<float> points(int64_t rows, uint64_t seed) const {
    std::vector<float> values(static_cast<size_t>(rows * cols_));
    std::vector<std::thread> threads;
    const int64_t workers = std::max(1u, std::thread::hardware_concurrency());
    for (int64_t worker = 0; worker < workers; ++worker) {
      threads.emplace_back([&, worker] {
        for (int64_t row = worker; row < rows; row += workers)
          point(Stream(seed, row), &values[static_cast<size_t>(row * cols_)]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return values;
  }

 private:
  static constexpr int64_t kCentres = 2000;
  static constexpr int64_t kFactors = 16;

  // Splitmix64, seeded by what it is for.
  struct Stream {
    uint64_t state;
    Stream(uint64_t seed, int64_t row)
        : state(seed * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(row) * 0xD1B54A32D192ED03u) {}
    uint64_t bits() {
      uint64_t z = state += 0x9E3779B97F4A7C15u;
      z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
      z = (z ^ z >> 27) * 0x94D049BB133111EBu;
      return z ^ z >> 31;
    }
    float uniform() { return static_cast<float>(bits() >> 40) * 0x1p-24f; }
    float gaussian() {
      const float radius = std::sqrt(-2 * std::log(uniform() + 0x1p-25f));
      return radius * std::cos(6.2831853f * uniform());
    }
  };

  std::vector<float> fill(int64_t count, uint64_t seed) const {
    std::vector<float> values(static_cast<size_t>(count));
    Stream stream(seed, 0);
    for (float& value : values) value = stream.gaussian();
    return values;
  }

  void point(Stream stream, float* out) const {
    const auto centre = static_cast<int64_t>(stream.bits() % kCentres);
    float z[kFactors];
    for (float& value : z) value = stream.gaussian();
    for (int64_t c = 0; c < cols_; ++c) {
      float value = centres_[static_cast<size_t>(centre * cols_ + c)] + 3 * stream.gaussian();
      for (int64_t f = 0; f < kFactors; ++f) value += z[f] * factors_[static_cast<size_t>(f * cols_ + c)];
      out[c] = value;
    }
  }

  int64_t cols_;
  std::vector<float> centres_;
  std::vector<float> factors_;
};
