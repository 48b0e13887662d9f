#include "cluster/kmeans_plus_plus.hpp"

#include "cluster/centre_sums.hpp"
#include "exact/row_source.hpp"
#include "exact/sample_mean.hpp"
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

// A block's room among the packed rows.
constexpr int64_t kPackedBlock =
    (kSumBlock + RowPanels::kAlignment - 1) / RowPanels::kAlignment * RowPanels::kAlignment;

int64_t blocks_in(int64_t rows) { return (rows + kSumBlock - 1) / kSumBlock; }

// In [0, 1), 53 bits.
double uniform_double(const CounterRng& rng, uint64_t index) {
  const Random4 words = rng.block(index);
  const uint64_t bits = static_cast<uint64_t>(words.word[0]) << 32 | words.word[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

int64_t KMeansPlusPlus::bytes_for(int64_t rows, int64_t clusters, int64_t cols) {
  if (rows == 0) return 0;
  const int64_t trials = trials_for(clusters);
  return rows * (cols + 1 + trials) * kFloat + trials * cols * kFloat + CentrePanels::bytes_for(trials, cols) +
         RowPanels::bytes_for(blocks_in(rows) * kPackedBlock, cols);
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
      trial_rows_(DType::f32, trials_, rows.cols(), "k-means++", resources),
      trial_panels_(KeyKind::squared_l2, trials_, rows.cols(), resources),
      panels_(KeyKind::squared_l2, blocks_ * kPackedBlock, rows.cols(), resources),
      sums_(static_cast<size_t>(blocks_)),
      trial_sums_(static_cast<size_t>(blocks_ * trials_)) {
  ViewSource source(rows);
  origin_ = sample_mean(source, rows.cols());
  const auto* const values = static_cast<const float*>(rows.data());
  for (int64_t block = 0; block < blocks_; ++block) {
    const int64_t first = block * kSumBlock;
    panels_.pack(values + first * rows.cols(), block * kPackedBlock, std::min(kSumBlock, rows.rows() - first), origin_);
  }
}

// Computes the distances of one block's rows to the trial rows that may be nearer than what they have.
class KMeansPlusPlus::Hits final : public PanelHits {
 public:
  Hits(KMeansPlusPlus& own, int64_t block) : own_(own), block_(block) {}

  void on_hit(int64_t i, int64_t panel, const float* values) override {
    const int64_t packed = block_ * kPackedBlock + i;
    const int64_t row = block_ * kSumBlock + i;
    const CentrePanels& trials = own_.trial_panels_;
    const float limit = own_.panels_.limit(packed) + own_.panels_.bound(packed, trials, panel);
    const CanonicalQuery query{static_cast<const float*>(own_.rows_.data()) + row * own_.rows_.cols(), 0.0};
    const int64_t first = panel * trials.rows_per_panel();
    for (int64_t t = first; t < std::min(first + trials.rows_per_panel(), trials.count()); ++t) {
      if (values[t - first] > limit) continue;  // a NaN is no reason to skip
      const auto trial = static_cast<uint32_t>(t);
      float key = 0;
      canonical_keys_cpu(KeyKind::squared_l2, query, trials.centres(), &trial, 1, &key);
      float& distance = own_.distances_.as<float>()[t * own_.rows_.rows() + row];
      distance = std::min(distance, key);
    }
  }

 private:
  KMeansPlusPlus& own_;
  int64_t block_;
};

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
  const int64_t cols = rows_.cols();
  const auto count = static_cast<int64_t>(trials.size());
  const MutableMatrixView centres = trial_rows_.mutable_view().slice(0, count);
  for (int64_t t = 0; t < count; ++t) {
    std::copy_n(static_cast<const float*>(rows_.data()) + trials[static_cast<size_t>(t)] * cols, cols,
                static_cast<float*>(centres.data()) + t * cols);
  }
  trial_panels_.pack(centres, origin_);
  const float* const nearest = nearest_.as<float>();
  parallel_for(blocks_, meter, resources, [&](int64_t block, int) {
    const int64_t first = block * kSumBlock;
    const int64_t rows = std::min(kSumBlock, rows_.rows() - first);
    for (int64_t t = 0; t < count; ++t) {
      std::copy_n(nearest + first, rows, distances_.as<float>() + t * rows_.rows() + first);
    }
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t packed = block * kPackedBlock + i;
      panels_.limit(packed) = nearest[first + i] - panels_.offset(packed);
    }
    Hits hits(*this, block);
    panels_.scan(trial_panels_, block * kPackedBlock, rows, hits);
    for (int64_t t = 0; t < count; ++t) {
      const float* const distances = distances_.as<float>() + t * rows_.rows() + first;
      double sum = 0;
      for (int64_t i = 0; i < rows; ++i) sum += weight(first + i) * static_cast<double>(distances[i]);
      trial_sums_[static_cast<size_t>(t * blocks_ + block)] = sum;
    }
  });
}

void KMeansPlusPlus::take(int64_t trial) {
  std::copy_n(distances_.as<float>() + trial * rows_.rows(), rows_.rows(), nearest_.as<float>());
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
