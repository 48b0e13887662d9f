#include "cluster/kmeans_plus_plus.hpp"

#include "cluster/centre_sums.hpp"
#include "kernels/distance/distance_cpu.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kFloat = sizeof(float);

// As scikit-learn has it; whole numbers only, so that no machine rounds another way.
int64_t trials_for(int64_t clusters) {
  int64_t trials = 2;
  for (double e = 2.718281828459045; e <= static_cast<double>(clusters); e *= 2.718281828459045) ++trials;
  return trials;
}

int64_t blocks_in(int64_t rows) { return (rows + kSumBlock - 1) / kSumBlock; }

// In [0, 1), 53 bits.
double uniform_double(const CounterRng& rng, uint64_t index) {
  const Random4 words = rng.block(index);
  const uint64_t bits = static_cast<uint64_t>(words.word[0]) << 32 | words.word[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

int64_t KMeansPlusPlus::bytes_for(int64_t rows, int64_t clusters, int64_t cols) {
  return rows * (cols + 1 + trials_for(clusters)) * kFloat;
}

KMeansPlusPlus::KMeansPlusPlus(const MatrixView& rows, std::vector<float> weights, int64_t clusters,
                               const Resources& resources)
    : rows_(rows),
      weights_(std::move(weights)),
      clusters_(clusters),
      trials_(trials_for(clusters)),
      blocks_(blocks_in(rows.rows())),
      nearest_(rows.rows() * kFloat, "k-means++", resources),
      distances_(rows.rows() * trials_ * kFloat, "k-means++", resources),
      sums_(static_cast<size_t>(blocks_)),
      trial_sums_(static_cast<size_t>(blocks_ * trials_)) {}

uint32_t KMeansPlusPlus::draw(double share) const {
  const double total = std::accumulate(sums_.begin(), sums_.end(), 0.0);
  const double target = share * total;
  double before = 0;
  int64_t block = 0;
  while (block + 1 < blocks_ && before + sums_[static_cast<size_t>(block)] <= target) {
    before += sums_[static_cast<size_t>(block++)];
  }
  const float* const nearest = nearest_.as<float>();
  const int64_t end = std::min((block + 1) * kSumBlock, rows_.rows());
  int64_t last = block * kSumBlock;  // the last row of the block that could be drawn: what rounding may lead to
  double reached = 0;
  for (int64_t i = block * kSumBlock; i < end; ++i) {
    const double step = weight(i) * static_cast<double>(nearest[i]);
    reached += step;
    if (before + reached > target) return static_cast<uint32_t>(i);
    if (step > 0) last = i;
  }
  return static_cast<uint32_t>(last);
}

void KMeansPlusPlus::try_rows(const std::vector<uint32_t>& trials, ProgressMeter& meter, const Resources& resources) {
  const auto* const values = static_cast<const float*>(rows_.data());
  const float* const nearest = nearest_.as<float>();
  parallel_for(blocks_, meter, resources, [&](int64_t block, int) {
    const int64_t first = block * kSumBlock;
    const int64_t count = std::min(kSumBlock, rows_.rows() - first);
    uint32_t numbers[kSumBlock];
    std::iota(numbers, numbers + count, static_cast<uint32_t>(first));
    for (size_t t = 0; t < trials.size(); ++t) {
      float* const keys = distances_.as<float>() + static_cast<int64_t>(t) * rows_.rows() + first;
      const CanonicalQuery trial{values + static_cast<int64_t>(trials[t]) * rows_.cols(), 0.0};
      canonical_keys_cpu(KeyKind::squared_l2, trial, rows_, numbers, count, keys);
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) {
        sum += weight(first + i) * static_cast<double>(std::min(nearest[first + i], keys[i]));
      }
      trial_sums_[t * static_cast<size_t>(blocks_) + static_cast<size_t>(block)] = sum;
    }
  });
}

void KMeansPlusPlus::take(int64_t trial) {
  float* const nearest = nearest_.as<float>();
  const float* const keys = distances_.as<float>() + trial * rows_.rows();
  for (int64_t i = 0; i < rows_.rows(); ++i) nearest[i] = std::min(nearest[i], keys[i]);
  std::copy_n(trial_sums_.begin() + trial * blocks_, blocks_, sums_.begin());
}

std::vector<uint32_t> KMeansPlusPlus::choose(const CounterRng& rng, ProgressMeter& meter, const Resources& resources) {
  // For the first draw every row is as far as any other.
  std::fill_n(nearest_.as<float>(), rows_.rows(), 1.0f);
  for (int64_t block = 0; block < blocks_; ++block) {
    double sum = 0;
    for (int64_t i = block * kSumBlock; i < std::min((block + 1) * kSumBlock, rows_.rows()); ++i) sum += weight(i);
    sums_[static_cast<size_t>(block)] = sum;
  }
  std::vector<uint32_t> chosen;
  std::vector<uint32_t> trials{draw(uniform_double(rng, 0))};
  std::fill_n(nearest_.as<float>(), rows_.rows(), INFINITY);
  for (int64_t centre = 0;; ++centre) {
    try_rows(trials, meter, resources);
    int64_t best = 0;
    double lowest = INFINITY;
    for (size_t t = 0; t < trials.size(); ++t) {
      const double* const sums = trial_sums_.data() + t * static_cast<size_t>(blocks_);
      const double total = std::accumulate(sums, sums + blocks_, 0.0);
      if (total < lowest) {
        lowest = total;
        best = static_cast<int64_t>(t);
      }
    }
    take(best);
    chosen.push_back(trials[static_cast<size_t>(best)]);
    meter.add(rows_.rows());
    if (centre + 1 == clusters_) return chosen;
    trials.resize(static_cast<size_t>(trials_));
    for (int64_t t = 0; t < trials_; ++t) {
      trials[static_cast<size_t>(t)] = draw(uniform_double(rng, static_cast<uint64_t>(1 + centre * trials_ + t)));
    }
  }
}

}  // namespace kith
