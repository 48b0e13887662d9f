#include "cluster/first_centres.hpp"

#include "cluster/centre_means.hpp"
#include "cluster/kmeans_plus_plus.hpp"
#include "cluster/kmeans_plus_plus_cuda.hpp"
#include "cluster/kmeans_run.hpp"
#include "cluster/row_sample.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <optional>

namespace kith {
namespace {

// Of the rows drawn, which are gathered to the host, unless a GPU chooses and has them.
void choose_by_plus_plus(const KMeansParams& params, const KMeansPlan& plan, const FirstCentresInput& input,
                         int64_t attempt, float* centres, const Resources& resources) {
  const int64_t rows = input.source.rows();
  const int64_t count = rows_to_choose_from(params, rows);
  std::vector<uint32_t> drawn =
      sample_rows(KMeansRun::random(params.seed, attempt, KMeansRun::Purpose::sample), rows, count, resources);
  const CounterRng rng = KMeansRun::random(params.seed, attempt, KMeansRun::Purpose::choose);
  PlusPlusInput from;
  from.clusters = params.clusters;
  from.pinned = plan.cuda.pinned_bytes > 0;
  if (input.weights != nullptr) {
    for (const uint32_t row : drawn) from.weights.push_back(input.weights[row]);
    // A sample in which nothing has weight is as good as one in which all have the same.
    if (std::all_of(from.weights.begin(), from.weights.end(), [](float w) { return w == 0; })) from.weights.clear();
  }
  ProgressMeter meter("kmeans++", count * params.clusters, resources);
  const std::optional<MatrixView> on_device = plan.cuda.plus_plus ? on_gpu(input.source) : std::nullopt;
  if (on_device) {
    from.rows = *on_device;
    if (count < rows) from.list = drawn;
    const std::vector<uint32_t> chosen = choose_plus_plus_cuda(plan.device.index, from, rng, meter, resources);
    meter.finish();
    std::vector<uint32_t> numbers(chosen.size());
    std::transform(chosen.begin(), chosen.end(), numbers.begin(), [&](uint32_t place) { return drawn[place]; });
    return gather_as_floats(input.source, numbers, centres, resources);
  }
  MatrixBuffer sample(DType::f32, count, input.cols, "the rows to choose centres from", resources);
  auto* const values = static_cast<float*>(sample.mutable_view().data());
  gather_as_floats(input.source, drawn, values, resources);
  from.rows = sample.view();
  const std::vector<uint32_t> chosen =
      plan.cuda.plus_plus
          ? choose_plus_plus_cuda(plan.device.index, from, rng, meter, resources)
          : KMeansPlusPlus(plan.cpu.format, from.rows, std::move(from.weights), params.clusters, resources)
                .choose(rng, meter, resources);
  meter.finish();
  for (size_t c = 0; c < chosen.size(); ++c) {
    std::copy_n(values + chosen[c] * input.cols, input.cols, centres + static_cast<int64_t>(c) * input.cols);
  }
}

// A zero vector has no direction: the first rows that have one take such centres' places, as long as there are any.
void replace_zero_centres(const FirstCentresInput& input, const MutableMatrixView& centres,
                          const Resources& resources) {
  int64_t next = 0;
  for (int64_t c = 0; c < centres.rows(); ++c) {
    auto* const centre = reinterpret_cast<float*>(centres.row(c));
    const auto is_zero = [&] { return std::all_of(centre, centre + input.cols, [](float x) { return x == 0; }); };
    while (is_zero() && next < input.source.rows()) {
      gather_as_floats(input.source, {static_cast<uint32_t>(next++)}, centre, resources);
    }
  }
}

}  // namespace

int64_t rows_to_choose_from(const KMeansParams& params, int64_t rows) {
  if (params.init != KMeansInit::kmeans_plus_plus) return 0;
  const int64_t per_centre = params.init_points_per_centre;
  return per_centre == 0 || per_centre > rows / params.clusters ? rows : per_centre * params.clusters;
}

void choose_first_centres(const KMeansParams& params, const KMeansPlan& plan, const FirstCentresInput& input,
                          int64_t attempt, const MutableMatrixView& centres, const Resources& resources) {
  auto* const out = static_cast<float*>(centres.data());
  switch (params.init) {
    case KMeansInit::given:
      for (int64_t c = 0; c < params.clusters; ++c) widen_row(input.given, c, out + c * input.cols);
      break;
    case KMeansInit::random:
      gather_as_floats(input.source,
                       sample_rows(KMeansRun::random(params.seed, attempt, KMeansRun::Purpose::sample),
                                   input.source.rows(), params.clusters, resources),
                       out, resources);
      break;
    case KMeansInit::kmeans_plus_plus: choose_by_plus_plus(params, plan, input, attempt, out, resources); break;
  }
  if (!params.spherical) return;
  if (params.init != KMeansInit::given) replace_zero_centres(input, centres, resources);
  normalise_centres(centres);
}

}  // namespace kith
