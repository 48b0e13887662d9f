#include "cluster/oversampled_start.hpp"

#include "cluster/candidate_draws.hpp"
#include "cluster/kmeans_plus_plus.hpp"
#include "cluster/row_sample.hpp"
#include "core/typed_row.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kGrowth = 3;   // of the candidates, in a round
constexpr int kMostRounds = 40;  // of data with few rows that differ

// Candidates drawn in rounds, and for each row the nearest.
class Rounds {
 public:
  Rounds(const OversampledInput& input, const Resources& resources)
      : input_(input),
        resources_(resources),
        values_(DType::f32, input.candidates, input.source.info().cols, "the candidates", resources),
        draws_(input.backend.make_draws(input.rows, resources)) {}

  void run(const CounterRng& rng, ProgressMeter& meter) {
    uint64_t number = 1;
    add({first_plus_plus_row(input_.rows.count, input_.rows.weights, rng)}, meter);
    for (int round = 1; round < kMostRounds && count_ < input_.candidates; ++round) {
      const double total = draws_->add_up(meter);
      if (!(total > 0) || !std::isfinite(total)) return;  // every row is a candidate's equal
      const int64_t wanted = std::min({kGrowth * count_, input_.clusters, input_.candidates - count_});
      std::vector<double> shares(static_cast<size_t>(wanted));
      for (double& share : shares) share = plus_plus_share(rng, number++);
      std::vector<uint32_t> drawn = draws_->draw(shares);
      std::sort(drawn.begin(), drawn.end());
      drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
      add(drawn, meter);
    }
  }

  int64_t count() const { return count_; }
  MatrixView values() const { return values_.view().slice(0, count_); }
  std::vector<float> weights() const { return draws_->weights(count_); }

 private:
  void add(const std::vector<uint32_t>& drawn, ProgressMeter& meter) {
    KMeansBackend& backend = input_.backend;
    const auto added = static_cast<int64_t>(drawn.size());
    const MutableMatrixView some = values_.mutable_view().slice(count_, added);
    gather_as_floats(input_.source, drawn, static_cast<float*>(some.data()), resources_);
    backend.set_rows({input_.rows.count, input_.rows.labels, input_.rows.keys, nullptr});
    backend.set_centres(some);
    backend.begin_pass({});
    backend.scan_all(input_.source, input_.piece_rows, meter);
    draws_->take_nearer(count_, meter);
    count_ += added;
  }

  const OversampledInput& input_;
  const Resources& resources_;
  MatrixBuffer values_;
  const std::unique_ptr<CandidateDraws> draws_;  // for each row the nearest
  int64_t count_ = 0;
};

void copy_rows(const MatrixView& from, const std::vector<uint32_t>& places, float* out) {
  for (const uint32_t place : places) {
    std::copy_n(typed_row<float>(from, place), from.cols(), out);
    out += from.cols();
  }
}

}  // namespace

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
