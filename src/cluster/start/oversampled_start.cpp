#include "cluster/start/oversampled_start.hpp"

#include "cluster/draw/candidate_draws.hpp"
#include "cluster/draw/kmeans_plus_plus.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kGrowth = 3;   // of the candidates, in a round
constexpr int kMostRounds = 40;  // of data with few rows that differ

// Rows that become candidates, and for each row the nearest.
void add_rows(const OversampledInput& input, const std::vector<uint32_t>& drawn, CandidateDraws& draws, Candidates& all,
              ProgressMeter& meter, const Resources& resources) {
  KMeansBackend& backend = input.backend;
  const auto added = static_cast<int64_t>(drawn.size());
  const MutableMatrixView some = all.values.mutable_view().slice(all.count, added);
  gather_as_floats(input.source, drawn, static_cast<float*>(some.data()), resources);
  backend.set_rows({input.rows.count, input.rows.labels, input.rows.keys, nullptr});
  backend.set_centres(some);
  backend.begin_pass({});
  backend.scan_all(input.source, input.piece_rows, meter);
  draws.take_nearer(all.count, meter);
  all.count += added;
}

}  // namespace

Candidates draw_candidates(const OversampledInput& input, const CounterRng& rng, ProgressMeter& meter,
                           const Resources& resources) {
  Candidates all;
  all.values = MatrixBuffer(DType::f32, input.candidates, input.source.info().cols, "the candidates", resources);
  const float* const weights = input.rows.weights;
  if (input.candidates == input.rows.count) {
    std::vector<uint32_t> numbers(static_cast<size_t>(input.candidates));
    std::iota(numbers.begin(), numbers.end(), 0u);
    gather_as_floats(input.source, numbers, static_cast<float*>(all.values.mutable_view().data()), resources);
    all.count = input.candidates;
    if (weights != nullptr) all.weights.assign(weights, weights + input.rows.count);
    return all;
  }
  const std::unique_ptr<CandidateDraws> draws = input.backend.make_draws(input.rows, resources);
  uint64_t number = 1;
  add_rows(input, {first_plus_plus_row(input.rows.count, weights, rng)}, *draws, all, meter, resources);
  for (int round = 1; round < kMostRounds && all.count < input.candidates; ++round) {
    const double total = draws->add_up(meter);
    if (!(total > 0) || !std::isfinite(total)) break;  // every row is a candidate's equal
    const int64_t wanted = std::min({kGrowth * all.count, input.clusters, input.candidates - all.count});
    std::vector<double> shares(static_cast<size_t>(wanted));
    for (double& share : shares) share = plus_plus_share(rng, number++);
    std::vector<uint32_t> drawn = draws->draw(shares);
    std::sort(drawn.begin(), drawn.end());
    drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
    add_rows(input, drawn, *draws, all, meter, resources);
  }
  all.weights = draws->weights(all.count);
  return all;
}

}  // namespace kith
