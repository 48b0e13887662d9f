// Rows of a mixture as bytes, each computed from its number alone, for collections that no memory and no disk holds: a
// random centre of 2,000, + 3 N(0,1), + z B with z ~ N(0,1)^16 and B a fixed 16 x d matrix of 6 N(0,1). The data of
// mixture.hpp by other draws: normal numbers come from a table, noise as two runs of it, so that a row takes about a tenth
// of a microsecond.
#pragma once

#include <kith/row_reader.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace kith::bench {

class ComputedMixture final : public RowReader {
 public:
  ComputedMixture(int64_t rows, int64_t cols) : rows_(rows), cols_(cols) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    normals_.resize(static_cast<size_t>(kNormals + cols));
    for (float& value : normals_) value = normal(random);
    centres_.resize(static_cast<size_t>(kCentres * cols));
    for (float& value : centres_) value = 40 * std::abs(normal(random));
    factors_.resize(static_cast<size_t>(kFactors * cols));
    for (float& value : factors_) value = 6 * normal(random);
  }

  const std::string& path() const override { return path_; }
  DType dtype() const override { return DType::u8; }
  int64_t rows() const override { return rows_; }
  int64_t cols() const override { return cols_; }

  // By all cores where there are many rows.
  void read_rows(int64_t first, int64_t count, void* out) const override {
    constexpr int64_t kThreadRows = 4096;  // that are worth a thread
    const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
    const int64_t workers = std::clamp<int64_t>(count / kThreadRows, 1, cores);
    std::vector<std::thread> threads;
    for (int64_t worker = 0; worker < workers; ++worker) {
      threads.emplace_back([=, this] {
        std::vector<float> row(static_cast<size_t>(cols_));
        for (int64_t i = count * worker / workers; i < count * (worker + 1) / workers; ++i) {
          make(static_cast<uint64_t>(first + i), row.data());
          auto* const to = static_cast<uint8_t*>(out) + i * cols_;
          for (int64_t c = 0; c < cols_; ++c) {
            to[c] = static_cast<uint8_t>(std::clamp(row[static_cast<size_t>(c)] + 0.5f, 0.0f, 255.0f));
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  static constexpr int64_t kCentres = 2000;
  static constexpr int64_t kFactors = 16;
  static constexpr int64_t kNormals = int64_t{1} << 16;

  // Sixteen random bits at a time.
  struct Draws {
    uint64_t state;
    uint64_t bits = 0;
    int used = 4;

    int64_t next() {
      if (used == 4) {
        uint64_t z = state += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        bits = z ^ z >> 31;
        used = 0;
      }
      return static_cast<int64_t>(bits >> 16 * used++ & 0xFFFFu);
    }
  };

  void make(uint64_t number, float* row) const {
    constexpr float kNoise = 3 * 0.70710678f;  // of each of two
    Draws draws{number * 0xD1B54A32D192ED03u};
    const float* const centre = centres_.data() + draws.next() % kCentres * cols_;
    const float* const noise = normals_.data() + draws.next();
    const float* const more = normals_.data() + draws.next();
    for (int64_t c = 0; c < cols_; ++c) row[c] = centre[c] + kNoise * (noise[c] + more[c]);
    for (int64_t f = 0; f < kFactors; ++f) {
      const float z = normals_[static_cast<size_t>(draws.next())];
      const float* const factor = factors_.data() + f * cols_;
      for (int64_t c = 0; c < cols_; ++c) row[c] += z * factor[c];
    }
  }

  const std::string path_ = "computed rows of a mixture";
  const int64_t rows_;
  const int64_t cols_;
  std::vector<float> normals_;
  std::vector<float> centres_;
  std::vector<float> factors_;
};

}  // namespace kith::bench
