#include "cluster/kmeans_plus_plus.hpp"

#include "cluster/centre_sums.hpp"
#include "core/divide.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/panels/packed_product.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

// A block's room among the packed rows: a multiple of every panel width.
constexpr int64_t kPackedBlock = round_up(kSumBlock, 24);
static_assert(kSumBlock == kDrawBlock);

}  // namespace

// As scikit-learn has it; whole numbers only, so that no machine rounds another way.
int64_t plus_plus_trials(int64_t clusters) {
  constexpr double kE = 2.718281828459045;
  double power = kE;
  int64_t trials = 2;
  while (power <= static_cast<double>(clusters)) {
    power *= kE;
    ++trials;
  }
  return trials;
}

double plus_plus_share(const CounterRng& rng, uint64_t number) {
  const Random4 words = rng.block(number);
  const uint64_t bits = static_cast<uint64_t>(words.word[0]) << 32 | words.word[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

uint32_t first_plus_plus_row(int64_t rows, const std::vector<float>& weights, const CounterRng& rng) {
  const DrawTree tree(rows);
  const auto step = [&](int64_t i) {
    return weights.empty() ? 1.0 : static_cast<double>(weights[static_cast<size_t>(i)]);
  };
  const auto segment = [&](int64_t block, int place) {
    const int64_t s = block * kDrawFan + place;
    return sum_children([&](int i) { return step(s * kDrawFan + i); }, DrawTree::children_of(s, rows));
  };
  std::vector<double> sums(static_cast<size_t>(tree.size));
  for (int64_t block = 0; block < tree.blocks(); ++block) {
    sums[static_cast<size_t>(block)] =
        sum_children([&](int i) { return segment(block, i); }, DrawTree::children_of(block, tree.segments));
  }
  add_up_tree(tree, sums.data());
  return draw_row(tree, sums.data(), plus_plus_share(rng, 0) * tree_total(tree, sums.data()), segment, step);
}

int64_t KMeansPlusPlus::bytes_for(PanelFormat format, int64_t rows, int64_t clusters, int64_t cols, int threads) {
  if (rows == 0) return 0;
  const int64_t trials = plus_plus_trials(clusters);
  const int64_t packed = divide_up(rows, kSumBlock) * kPackedBlock;
  return array_bytes<float>(rows * (cols + 1 + trials) + trials * cols + packed) +
         PackedRows::bytes_for(format, trials, cols, threads) + PackedQueries::bytes_for(format, packed, cols) +
         PackedQueries::scratch_bytes(format, cols);
}

KMeansPlusPlus::KMeansPlusPlus(PanelFormat format, const MatrixView& rows, std::vector<float> weights, int64_t clusters,
                               const Resources& resources)
    : rows_(rows),
      weights_(std::move(weights)),
      clusters_(clusters),
      trials_(plus_plus_trials(clusters)),
      tree_(rows.rows()),
      nearest_(rows.rows(), "k-means++", resources),
      distances_(rows.rows() * trials_, "k-means++", resources),
      trial_rows_(DType::f32, trials_, rows.cols(), "k-means++", resources),
      packed_trials_(KeyKind::squared_l2, format, choose_origin(KeyKind::squared_l2, rows), trials_, resources),
      packed_(KeyKind::squared_l2, format, tree_.blocks() * kPackedBlock, rows.cols(), resources),
      limits_(tree_.blocks() * kPackedBlock, "k-means++", resources),
      sums_(static_cast<size_t>(tree_.size)),
      trial_sums_(static_cast<size_t>(tree_.size * trials_)) {
  const HostArray<std::byte> scratch(PackedQueries::scratch_bytes(format, rows.cols()), "packing", resources);
  const auto* const values = static_cast<const float*>(rows.data());
  const int64_t width = packed_.panel_width();
  std::fill(limits_.begin(), limits_.end(), -INFINITY);  // rows that only fill up accept nothing
  for (int64_t row = 0; row < rows.rows();) {
    const int64_t block = row / kSumBlock;
    const int64_t panel = (block * kPackedBlock + row % kSumBlock) / width;
    const int64_t count = std::min({width, (block + 1) * kSumBlock - row, rows.rows() - row});
    packed_.pack_panel(panel, values + row * rows.cols(), count, packed_trials_.origin(), scratch.data());
    row += count;
  }
}

// Computes the distances of one block's rows to the trial rows that may be nearer than what they have.
class KMeansPlusPlus::Hits final : public PanelHits {
 public:
  Hits(KMeansPlusPlus& own, int64_t block, int64_t count)
      : own_(own),
        block_(block),
        limits_(own.limits_.data() + block * kPackedBlock),
        product_(own.packed_, block * kPackedBlock, count, limits_, own.packed_trials_) {
    for (int64_t i = 0; i < count; ++i) {
      limits_[i] = own.nearest_[block * kSumBlock + i] - own.packed_.offset(block * kPackedBlock + i);
    }
  }

  void scan() { product_.scan(*this); }

  void on_hit(int64_t i, int64_t panel, const float* values) override {
    const int64_t row = block_ * kSumBlock + i;
    const PackedRows& trials = own_.packed_trials_;
    const float limit = limits_[i] + product_.bound(i, panel);
    const CanonicalQuery query{static_cast<const float*>(own_.rows_.data()) + row * own_.rows_.cols(), 0.0};
    const int64_t first = panel * trials.rows_per_panel();
    for (int64_t t = first; t < std::min(first + trials.rows_per_panel(), trials.rows()); ++t) {
      if (values[t - first] > limit) continue;  // a NaN is no reason to skip
      const auto trial = static_cast<uint32_t>(t);
      float key = 0;
      canonical_keys_cpu(KeyKind::squared_l2, query, own_.trial_rows_.view(), &trial, 1, &key);
      float& distance = own_.distances_[t * own_.rows_.rows() + row];
      distance = std::min(distance, key);
    }
  }

 private:
  KMeansPlusPlus& own_;
  const int64_t block_;
  float* const limits_;
  const PackedProduct product_;
};

double KMeansPlusPlus::segment_sum(const float* distances, int64_t segment) const {
  const int64_t first = segment * kDrawFan;
  const int count = DrawTree::children_of(segment, tree_.rows);
  double sum = 0;
  if (weights_.empty()) {
    for (int i = 0; i < count; ++i) sum += static_cast<double>(distances[first + i]);
  } else {
    for (int i = 0; i < count; ++i) sum += weight(first + i) * static_cast<double>(distances[first + i]);
  }
  return sum;
}

uint32_t KMeansPlusPlus::draw(double share) const {
  const float* const nearest = nearest_.data();
  return draw_row(
      tree_, sums_.data(), share * tree_total(tree_, sums_.data()),
      [&](int64_t block, int i) { return segment_sum(nearest, block * kDrawFan + i); },
      [&](int64_t i) { return weight(i) * static_cast<double>(nearest[i]); });
}

void KMeansPlusPlus::try_rows(const std::vector<uint32_t>& trials, ProgressMeter& meter, const Resources& resources) {
  const int64_t cols = rows_.cols();
  const auto count = static_cast<int64_t>(trials.size());
  const MutableMatrixView centres = trial_rows_.mutable_view().slice(0, count);
  for (int64_t t = 0; t < count; ++t) {
    std::copy_n(static_cast<const float*>(rows_.data()) + trials[static_cast<size_t>(t)] * cols, cols,
                static_cast<float*>(centres.data()) + t * cols);
  }
  packed_trials_.pack(centres, {}, meter, resources);
  const float* const nearest = nearest_.data();
  parallel_for(tree_.blocks(), meter, resources, [&](int64_t block, int) {
    const int64_t first = block * kSumBlock;
    const int64_t rows = std::min(kSumBlock, rows_.rows() - first);
    for (int64_t t = 0; t < count; ++t) {
      std::copy_n(nearest + first, rows, distances_.data() + t * rows_.rows() + first);
    }
    Hits(*this, block, rows).scan();
    for (int64_t t = 0; t < count; ++t) {
      const float* const distances = distances_.data() + t * rows_.rows();
      double sum = 0;
      for (int i = 0; i < DrawTree::children_of(block, tree_.segments); ++i) {
        sum += segment_sum(distances, block * kDrawFan + i);
      }
      trial_sums_[static_cast<size_t>(t * tree_.size + block)] = sum;
    }
  });
  for (int64_t t = 0; t < count; ++t) add_up_tree(tree_, trial_sums_.data() + t * tree_.size);
}

void KMeansPlusPlus::take(int64_t trial) {
  std::copy_n(distances_.data() + trial * rows_.rows(), rows_.rows(), nearest_.data());
  std::copy_n(trial_sums_.begin() + trial * tree_.size, tree_.size, sums_.begin());
}

std::vector<uint32_t> KMeansPlusPlus::choose(const CounterRng& rng, ProgressMeter& meter, const Resources& resources) {
  std::vector<uint32_t> chosen;
  std::vector<uint32_t> trials{first_plus_plus_row(rows_.rows(), weights_, rng)};
  std::fill_n(nearest_.data(), rows_.rows(), INFINITY);
  for (int64_t centre = 0;; ++centre) {
    try_rows(trials, meter, resources);
    int64_t best = 0;
    double lowest = INFINITY;
    for (size_t t = 0; t < trials.size(); ++t) {
      const double total = tree_total(tree_, trial_sums_.data() + static_cast<int64_t>(t) * tree_.size);
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
      trials[static_cast<size_t>(t)] = draw(plus_plus_share(rng, static_cast<uint64_t>(1 + centre * trials_ + t)));
    }
  }
}

}  // namespace kith
