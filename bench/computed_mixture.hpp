// Rows of a mixture as bytes, each computed from its number alone, for collections that no memory and no disk holds: a
// random centre of 2,000, + 3 N(0,1), + z B with z ~ N(0,1)^16 and B a fixed 16 x d matrix of 6 N(0,1). The data of
// mixture.hpp by other draws: z is one of 64 quantiles, noise two runs of a table of normal numbers, and all is added in
// sixteenths, so that every machine makes the same rows, in a twentieth of a microsecond each.
#pragma once

#include <kith/row_reader.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace kith::bench {

class ComputedMixture final : public RowReader {
 public:
  ComputedMixture(int64_t rows, int64_t cols) : rows_(rows), cols_(cols), stride_((cols + kLanes - 1) / kLanes * kLanes) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < kNormals + stride_; ++i) noise_.push_back(sixteenths(3 * 0.70710678f * normal(random)));
    for (int64_t i = 0; i < kCentres * stride_; ++i) centres_.push_back(sixteenths(40 * std::abs(normal(random))));
    std::vector<float> quantiles(kQuantiles);
    for (float& z : quantiles) z = normal(random);
    for (int64_t f = 0; f < kFactors; ++f) {
      std::vector<float> factor(static_cast<size_t>(stride_));
      for (float& value : factor) value = 6 * normal(random);
      for (const float z : quantiles) {
        for (const float value : factor) steps_.push_back(sixteenths(z * value));
      }
    }
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
        std::vector<uint8_t> row(static_cast<size_t>(stride_));
        for (int64_t i = count * worker / workers; i < count * (worker + 1) / workers; ++i) {
          make(static_cast<uint64_t>(first + i), row.data());
          std::memcpy(static_cast<uint8_t*>(out) + i * cols_, row.data(), static_cast<size_t>(cols_));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  static constexpr int64_t kLanes = 8;
  using Lanes = int16_t __attribute__((vector_size(16)));
  using Bytes = uint8_t __attribute__((vector_size(8)));

  static constexpr int64_t kCentres = 2000;
  static constexpr int64_t kFactors = 16;
  static constexpr int64_t kQuantiles = 64;
  static constexpr int64_t kNormals = int64_t{1} << 16;

  static int16_t sixteenths(float value) { return static_cast<int16_t>(std::lround(16 * value)); }

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

  static Lanes load(const int16_t* from) {
    Lanes lanes;
    std::memcpy(&lanes, from, sizeof(lanes));
    return lanes;
  }

  void make(uint64_t number, uint8_t* out) const {
    Draws draws{number * 0xD1B54A32D192ED03u};
    const int16_t* terms[3 + kFactors];
    terms[0] = centres_.data() + draws.next() % kCentres * stride_;
    terms[1] = noise_.data() + draws.next();
    terms[2] = noise_.data() + draws.next();
    for (int64_t f = 0; f < kFactors; ++f) {
      terms[3 + f] = steps_.data() + (f * kQuantiles + draws.next() % kQuantiles) * stride_;
    }
    for (int64_t c = 0; c < stride_; c += kLanes) {
      Lanes sum = Lanes{} + 8;  // to the nearest
      for (const int16_t* const term : terms) sum += load(term + c);
      sum >>= 4;
      sum = sum < 0 ? Lanes{} : sum;
      sum = sum > 255 ? Lanes{} + 255 : sum;
      const Bytes bytes = __builtin_convertvector(sum, Bytes);
      std::memcpy(out + c, &bytes, sizeof(bytes));
    }
  }

  const std::string path_ = "computed rows of a mixture";
  const int64_t rows_;
  const int64_t cols_;
  const int64_t stride_;  // whole lanes
  std::vector<int16_t> noise_;
  std::vector<int16_t> centres_;
  std::vector<int16_t> steps_;  // of each factor by each quantile
};

}  // namespace kith::bench
