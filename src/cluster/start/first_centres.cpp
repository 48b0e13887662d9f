#include "cluster/start/first_centres.hpp"

#include "cluster/draw/kmeans_plus_plus.hpp"
#include "cluster/draw/kmeans_plus_plus_cuda.hpp"
#include "cluster/draw/plus_plus_in_cells.hpp"
#include "cluster/steps/centre_means.hpp"
#include "cluster/steps/kmeans_run.hpp"
#include "core/typed_row.hpp"
#include "rows/row_sample.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>

namespace kith {
namespace {

// Limits of k-means++: multiplications, which take a core about a second, and values that are read for each centre,
// 256 MiB of f32.
constexpr double kMostStartWork = 0x1p33;
constexpr double kMostValues = 0x1p26;
constexpr int64_t kSampledPerCentre = 32;
constexpr int64_t kLeastSampled = int64_t{1} << 14;
constexpr int64_t kFewForRounds = 32;  // for so few, candidates drawn in rounds would be few too
constexpr int64_t kCandidatesPerCentre = 4;

CounterRng random_of(const KMeansParams& params, int64_t attempt, KMeansRun::Purpose purpose) {
  return KMeansRun::random(params.seed, attempt, purpose);
}

// f32 rows in host memory, one after the other, as they are stored.
std::optional<MatrixView> plain_floats(RowSource& source) {
  const RowsInfo info = source.info();
  if (!info.in_memory || !info.space.host_readable() || info.dtype != DType::f32) return std::nullopt;
  const MatrixView all = source.fetch(0, info.rows);
  if (all.row_stride() != all.cols()) return std::nullopt;
  return all;
}

// k-means++ over all rows, or over a sample of them.
class PlusPlusChoice {
 public:
  PlusPlusChoice(const KMeansParams& params, const KMeansPlan& plan, const FirstCentresInput& input, int64_t count,
                 int64_t attempt, const Resources& resources)
      : params_(params),
        plan_(plan),
        source_(input.source),
        rng_(random_of(params, attempt, KMeansRun::Purpose::choose)),
        resources_(resources),
        meter_("kmeans++", count * params.clusters, resources) {
    const int64_t rows = source_.rows();
    if (count < rows) {
      drawn_ = sample_rows(random_of(params, attempt, KMeansRun::Purpose::sample), rows, count, resources);
    }
    weights_ = input.rows.weights;
    if (weights_ == nullptr) return;
    if (!drawn_.empty()) {
      drawn_weights_.reserve(drawn_.size());
      for (const uint32_t row : drawn_) drawn_weights_.push_back(weights_[row]);
      weights_ = drawn_weights_.data();
    }
    // If all weights of the sample are 0, all rows count the same.
    if (std::all_of(weights_, weights_ + count, [](float w) { return w == 0; })) weights_ = nullptr;
  }

  void run(float* centres) {
    std::vector<uint32_t> chosen = plan_.chooses_on_device() ? on_device() : on_host();
    meter_.finish();
    for (uint32_t& place : chosen) place = static_cast<uint32_t>(number_of(place));
    gather_as_floats(source_, chosen, centres, resources_);
  }

 private:
  int64_t number_of(int64_t place) const { return drawn_.empty() ? place : drawn_[static_cast<size_t>(place)]; }
  int64_t count() const { return drawn_.empty() ? source_.rows() : static_cast<int64_t>(drawn_.size()); }

  std::vector<uint32_t> on_device() {
    PlusPlusInput from;
    from.clusters = params_.clusters;
    from.pinned = plan_.cuda()->pinned_bytes > 0;
    from.weights = weights_;
    MatrixBuffer sample;
    if (const std::optional<MatrixView> there = on_gpu(source_)) {
      from.rows = *there;
      from.list = drawn_;
    } else if (const std::optional<MatrixView> all = drawn_.empty() ? plain_floats(source_) : std::nullopt) {
      from.rows = *all;
    } else {
      sample = MatrixBuffer(DType::f32, count(), source_.info().cols, "the rows to choose centres from", resources_);
      for_numbers([&](const std::vector<uint32_t>& numbers, int64_t first) {
        gather_as_floats(source_, numbers, typed_row<float>(sample.mutable_view(), first), resources_);
      });
      from.rows = sample.view();
    }
    return choose_plus_plus_cuda(plan_.device().index, from, rng_, meter_, resources_);
  }

  std::vector<uint32_t> on_host() {
    const RowsInfo info = source_.info();
    const bool all_on_host = drawn_.empty() && info.space.host_readable();
    if (plan_.start_stays && !(all_on_host && info.in_memory)) {
      MatrixBuffer sample(info.dtype, count(), info.cols, "the rows to choose centres from", resources_);
      for_numbers([&](const std::vector<uint32_t>& numbers, int64_t first) {
        gather(source_, numbers, sample.mutable_view().slice(first, std::ssize(numbers)), resources_);
      });
      ViewSource kept(sample.view());
      return choose(kept, kept.rows());
    }
    if (all_on_host) return choose(source_, plan_.piece_rows);
    GatheredSource some(source_, drawn_, info.dtype, resources_);
    some.open(plan_.piece_rows, resources_);
    return choose(some, plan_.piece_rows);
  }

  std::vector<uint32_t> choose(RowSource& from, int64_t piece) {
    return KMeansPlusPlus(plan_.format, {from, piece, plan_.start_stays, weights_}, params_.clusters, resources_)
        .choose(rng_, meter_, resources_);
  }

  // Calls use(row numbers, place of the first) for the rows to choose from, some at a time.
  template <typename Use>
  void for_numbers(const Use& use) const {
    constexpr int64_t kAtOnce = int64_t{1} << 14;
    for (int64_t first = 0; first < count(); first += kAtOnce) {
      std::vector<uint32_t> numbers = row_numbers(first, std::min(kAtOnce, count() - first));
      for (uint32_t& place : numbers) place = static_cast<uint32_t>(number_of(place));
      use(numbers, first);
    }
  }

  const KMeansParams& params_;
  const KMeansPlan& plan_;
  RowSource& source_;
  const CounterRng rng_;
  const Resources& resources_;
  ProgressMeter meter_;
  std::vector<uint32_t> drawn_;  // empty: all rows
  std::vector<float> drawn_weights_;
  const float* weights_ = nullptr;  // of the rows to choose from, or none
};

constexpr int64_t kGrowth = 3;   // of the candidates, in a round
constexpr int kMostRounds = 40;  // of data with few rows that differ

// Adds rows to the candidates, and updates every row's nearest candidate.
void add_rows(const OversampledInput& input, const std::vector<uint32_t>& drawn, CandidateDraws& draws, Candidates& all,
              ProgressMeter& meter, const Resources& resources) {
  KMeansBackend& backend = input.backend;
  const auto added = static_cast<int64_t>(drawn.size());
  const MutableMatrixView some = all.values.mutable_view().slice(all.count, added);
  gather_as_floats(input.source, drawn, static_cast<float*>(some.data()), resources);
  backend.set_rows({input.rows.count, input.rows.labels, input.rows.keys, nullptr});
  backend.set_centres(some);
  backend.begin_pass({.only_nearer = true});
  backend.scan_all(input.source, input.piece_rows, meter);
  draws.take_nearer(all.count, meter);
  all.count += added;
}

void choose_from_candidates(const KMeansParams& params, const KMeansPlan& plan, const FirstCentresInput& input,
                            int64_t wanted, int64_t attempt, float* centres, const Resources& resources) {
  ProgressMeter meter("kmeans++", 8 * input.rows.count, resources);
  const Candidates all =
      draw_candidates({input.source, *input.backend, input.rows, plan.piece_rows, params.clusters, wanted},
                      random_of(params, attempt, KMeansRun::Purpose::sample), meter, resources);
  const MatrixView rows = all.rows();
  const float* const weights = all.weights.empty() ? nullptr : all.weights.data();
  const CounterRng rng = random_of(params, attempt, KMeansRun::Purpose::choose);
  const int64_t cells = plus_plus_cells(rows.rows(), rows.cols(), params.clusters);
  std::vector<uint32_t> places;
  if (cells > 1) {
    const uint64_t stream = KMeansRun::stream(attempt, KMeansRun::Purpose::choose);
    places = choose_plus_plus_in_cells({rows, weights, params.clusters, cells, plan.format, params.seed, stream}, meter,
                                       resources);
  } else if (plan.chooses_on_device()) {
    places = choose_plus_plus_cuda(plan.device().index, {rows, {}, weights, params.clusters}, rng, meter, resources);
  } else {
    ViewSource source(rows);
    places = KMeansPlusPlus(plan.format, {source, rows.rows(), true, weights}, params.clusters, resources)
                 .choose(rng, meter, resources);
  }
  for (const uint32_t place : places) {
    centres = std::copy_n(typed_row<float>(rows, place), rows.cols(), centres);
  }
  meter.finish();
}

// Replaces centres that are zero vectors, which have no direction, by the first rows that have one, if any.
void replace_zero_centres(RowSource& source, const MutableMatrixView& centres, const Resources& resources) {
  int64_t next = 0;
  for (int64_t c = 0; c < centres.rows(); ++c) {
    auto* const centre = typed_row<float>(centres, c);
    const auto is_zero = [&] { return std::all_of(centre, centre + centres.cols(), [](float x) { return x == 0; }); };
    while (is_zero() && next < source.rows()) {
      gather_as_floats(source, {static_cast<uint32_t>(next++)}, centre, resources);
    }
  }
}

}  // namespace

Candidates draw_candidates(const OversampledInput& input, const CounterRng& rng, ProgressMeter& meter,
                           const Resources& resources) {
  Candidates all;
  all.values = MatrixBuffer(DType::f32, input.candidates, input.source.info().cols, "the candidates", resources);
  const float* const weights = input.rows.weights;
  if (input.candidates == input.rows.count) {
    gather_as_floats(input.source, row_numbers(0, input.candidates),
                     static_cast<float*>(all.values.mutable_view().data()), resources);
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

StartChoice choose_start(const KMeansParams& params, int64_t rows, int64_t cols) {
  if (params.init != KMeansInit::kmeans_plus_plus) return {};
  const int64_t k = params.clusters;
  const auto sampled = [&](int64_t count) { return StartChoice{std::min(count, rows), 0}; };
  if (const int64_t per_centre = params.init_points_per_centre; per_centre != kAutomaticInitPoints) {
    return sampled(per_centre == 0 || per_centre > rows / k ? rows : per_centre * k);
  }
  const int64_t least = std::max(kSampledPerCentre * k, kLeastSampled);
  if (params.batch_size > 0) return sampled(least);
  // The number of rows up to which that is cheap.
  const auto columns = static_cast<double>(cols);
  const double per_row = columns * static_cast<double>(k) * static_cast<double>(plus_plus_trials(k));
  const auto cheap = static_cast<int64_t>(std::min(kMostStartWork / per_row, kMostValues / columns));
  if (rows <= cheap || params.spherical || k < kFewForRounds) {
    return sampled(std::max(cheap, least));
  }
  return {0, std::min(kCandidatesPerCentre * k, rows)};
}

void choose_first_centres(const KMeansParams& params, const KMeansPlan& plan, const FirstCentresInput& input,
                          int64_t attempt, const MutableMatrixView& centres, const Resources& resources) {
  auto* const out = static_cast<float*>(centres.data());
  const int64_t rows = input.source.rows();
  const StartChoice start = choose_start(params, rows, centres.cols());
  if (params.init == KMeansInit::given) {
    for (int64_t c = 0; c < params.clusters; ++c) widen_row(input.given, c, out + c * centres.cols());
  } else if (params.init == KMeansInit::random) {
    const CounterRng rng = random_of(params, attempt, KMeansRun::Purpose::sample);
    gather_as_floats(input.source, sample_rows(rng, rows, params.clusters, resources), out, resources);
  } else if (start.oversamples()) {
    choose_from_candidates(params, plan, input, start.candidates, attempt, out, resources);
  } else {
    PlusPlusChoice(params, plan, input, start.plus_plus_rows, attempt, resources).run(out);
  }
  if (!params.spherical) return;
  if (params.init != KMeansInit::given) replace_zero_centres(input.source, centres, resources);
  normalise_centres(centres);
}

}  // namespace kith
