#include "cluster/oversampled_start.hpp"

#include "cluster/kmeans_plus_plus.hpp"
#include "cluster/row_sample.hpp"
#include "cluster/weighted_draw.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kGrowth = 3;   // of the candidates, in a round
constexpr int kMostRounds = 40;  // of data with few rows that differ
constexpr int64_t kTaskRows = 8192;

// Candidates drawn in rounds, and for each row the nearest.
class Rounds {
 public:
  Rounds(const OversampledInput& input, const Resources& resources)
      : input_(input),
        resources_(resources),
        values_(DType::f32, input.candidates, input.source.info().cols, "the candidates", resources),
        nearest_(input.rows.count, "drawing candidates", resources),
        owner_(input.rows.count, "drawing candidates", resources) {
    std::fill(nearest_.begin(), nearest_.end(), INFINITY);
    std::fill(owner_.begin(), owner_.end(), 0);
  }

  void run(const CounterRng& rng, ProgressMeter& meter) {
    const DrawSteps steps{nearest_.data(), input_.rows.weights};
    WeightedDraw tree(input_.rows.count);
    uint64_t number = 1;
    add({first_plus_plus_row(input_.rows.count, input_.rows.weights, rng)}, meter);
    for (int round = 1; round < kMostRounds && count_ < input_.candidates; ++round) {
      tree.add_up(steps, meter, resources_);
      const double total = tree.total();
      if (!(total > 0) || !std::isfinite(total)) return;  // every row is a candidate's equal
      const int64_t wanted = std::min({kGrowth * count_, input_.clusters, input_.candidates - count_});
      std::vector<uint32_t> drawn(static_cast<size_t>(wanted));
      for (uint32_t& row : drawn) row = tree.draw(steps, plus_plus_share(rng, number++));
      std::sort(drawn.begin(), drawn.end());
      drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
      add(drawn, meter);
    }
  }

  int64_t count() const { return count_; }
  MatrixView values() const { return values_.view().slice(0, count_); }

  // The weight of the rows nearest to each, added up in their order.
  std::vector<float> weights() const {
    std::vector<double> sums(static_cast<size_t>(count_), 0.0);
    for (int64_t i = 0; i < input_.rows.count; ++i) {
      sums[static_cast<size_t>(owner_[i])] +=
          input_.rows.weights == nullptr ? 1.0 : static_cast<double>(input_.rows.weights[i]);
    }
    return {sums.begin(), sums.end()};
  }

 private:
  void add(const std::vector<uint32_t>& drawn, ProgressMeter& meter) {
    KMeansBackend& backend = input_.backend;
    const auto added = static_cast<int64_t>(drawn.size());
    const MutableMatrixView some = values_.mutable_view().slice(count_, added);
    gather_as_floats(input_.source, drawn, static_cast<float*>(some.data()), resources_);
    backend.set_rows({input_.rows.count, input_.rows.labels, input_.rows.keys, nullptr});
    backend.set_centres(some);
    backend.begin_pass(false);
    backend.scan_all(input_.source, input_.piece_rows, meter);
    backend.get_rows();
    parallel_for(divide_up(input_.rows.count, kTaskRows), meter, resources_, [&](int64_t task, int) {
      for (int64_t i = task * kTaskRows; i < std::min((task + 1) * kTaskRows, input_.rows.count); ++i) {
        if (!(input_.rows.keys[i] < nearest_[i])) continue;
        nearest_[i] = input_.rows.keys[i];
        owner_[i] = static_cast<int32_t>(count_) + input_.rows.labels[i];
      }
    });
    count_ += added;
  }

  const OversampledInput& input_;
  const Resources& resources_;
  MatrixBuffer values_;
  HostArray<float> nearest_;  // each row's squared distance to the nearest candidate
  HostArray<int32_t> owner_;  // which one
  int64_t count_ = 0;
};

void copy_rows(const MatrixView& from, const std::vector<uint32_t>& places, float* out) {
  for (const uint32_t place : places) {
    std::copy_n(reinterpret_cast<const float*>(from.row(place)), from.cols(), out);
    out += from.cols();
  }
}

}  // namespace

int64_t oversampled_bytes(int64_t rows, int64_t cols, int64_t candidates) {
  return array_bytes<float>(2 * rows) + array_bytes<float>(candidates * (cols + 3));
}

void choose_oversampled(const OversampledInput& input, const CounterRng& draws, const ChooseCandidates& choose,
                        float* centres, ProgressMeter& meter, const Resources& resources) {
  if (input.candidates == input.rows.count) {
    MatrixBuffer values(DType::f32, input.candidates, input.source.info().cols, "the candidates", resources);
    std::vector<uint32_t> numbers(static_cast<size_t>(input.candidates));
    std::iota(numbers.begin(), numbers.end(), 0u);
    gather_as_floats(input.source, numbers, static_cast<float*>(values.mutable_view().data()), resources);
    CandidateRows all{values.view(), {}};
    if (input.rows.weights != nullptr) all.weights.assign(input.rows.weights, input.rows.weights + input.rows.count);
    return copy_rows(all.rows, choose(all), centres);
  }
  Rounds rounds(input, resources);
  rounds.run(draws, meter);
  copy_rows(rounds.values(), choose({rounds.values(), rounds.weights()}), centres);
}

}  // namespace kith
