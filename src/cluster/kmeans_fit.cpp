#include "cluster/kmeans_fit.hpp"

#include <kith/error.hpp>

#include "cluster/data_survey.hpp"
#include "cluster/first_centres.hpp"
#include "cluster/kmeans_checks.hpp"
#include "cluster/kmeans_run.hpp"
#include "cluster/row_sample.hpp"
#include "core/dispatch.hpp"
#include "cuda/device_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr int64_t kDouble = sizeof(double);
constexpr uint64_t kSubsampleStream = 0;  // the runs' streams begin after it

KMeansPlan plan_for(const KMeansProblem& problem, Device device, PlanBudget budget) {
  return dispatch(
      device, [&] { return plan_kmeans_cpu(problem, budget); },
      [&](int index) {
        const DeviceInfo info = usable_gpu(Device::cuda(index));
        budget.device = std::min(budget.device, info.memory_free);
        return plan_kmeans_cuda(problem, info, budget);
      });
}

KMeansProblem problem_of(const KMeansParams& params, const KMeansRows& rows, bool fits) {
  KMeansProblem problem;
  problem.rows = rows.info.rows;
  problem.cols = rows.info.cols;
  problem.dtype = rows.info.dtype;
  problem.space = rows.info.space;
  problem.clusters = params.clusters;
  problem.spherical = params.spherical;
  problem.in_memory = rows.in_memory;
  problem.adds_up = fits;
  if (fits) {
    problem.passes = params.iterations * params.n_init;
    problem.sampled_rows = rows_to_choose_from(params, rows.info.rows);
    problem.batch_rows = std::min(params.batch_size, rows.info.rows);
  }
  return problem;
}

bool wants_check(const KMeansParams& params, const KMeansProblem& problem) {
  return params.check_finite && problem.dtype != DType::u8 && problem.dtype != DType::i8;
}

// Checks the values, unless the backend does, and finds the tolerance in the centres' unit.
double survey(const KMeansParams& params, const KMeansProblem& problem, const KMeansPlan& plan, RowSource& source,
              const std::vector<float>& origin, const Resources& resources) {
  const bool check = wants_check(params, problem) && !problem.check_finite;
  if (!check && params.tol == 0) return 0;
  ProgressMeter meter("survey", problem.rows, resources);
  DataSurvey survey(origin, problem.space.host_readable() ? plan.piece_rows : 0, resources);
  for (int64_t first = 0; first < problem.rows; first += plan.piece_rows) {
    const int64_t count = std::min(plan.piece_rows, problem.rows - first);
    survey.add(source.fetch(first, count), first, check, meter, resources);
    meter.add(count);
    meter.poll();
  }
  meter.finish();
  return params.tol * survey.variance();
}

KMeansModel empty_model(const KMeansParams& params, int64_t rows, int64_t cols, const Resources& resources) {
  KMeansModel model;
  model.centres = MatrixBuffer(DType::f32, params.clusters, cols, "the centres", resources);
  model.counts = HostBuffer(params.clusters * kDouble, "the centres' weights", resources);
  model.labels = HostBuffer(rows * static_cast<int64_t>(sizeof(int32_t)), "the labels", resources);
  model.label_count = rows;
  return model;
}

KMeansModel fit_all_rows(const KMeansParams& params, const KMeansRows& rows, const KMeansInput& input,
                         const Resources& outer) {
  KMeansProblem problem = problem_of(params, rows, true);
  problem.weighted = input.weights.data != nullptr;
  KMeansModel best = empty_model(params, problem.rows, problem.cols, outer);
  KMeansModel other;
  if (params.n_init > 1) other = empty_model(params, problem.rows, problem.cols, outer);
  best.objective = std::numeric_limits<double>::infinity();

  const PlannedKMeans planned = plan_kmeans(problem, outer);
  const Resources& resources = planned.resources();
  // Where the variance is not asked for, a GPU looks at the values when it rounds them: a read of the data less.
  problem.check_finite = wants_check(params, problem) && params.tol == 0 && params.batch_size == 0 &&
                         planned.plan.device.kind == DeviceKind::cuda && planned.plan.cuda.products;
  const std::unique_ptr<RowSource> source = rows.open(planned.plan.piece_rows, resources);
  const DataSample sample = sample_data(*source, problem.cols, resources);
  const double tolerance = survey(params, problem, planned.plan, *source, sample.origin, resources);
  const HostBuffer keys(problem.rows * static_cast<int64_t>(sizeof(float)), "the distances", resources);
  for (int64_t attempt = 0; attempt < params.n_init; ++attempt) {
    KMeansModel& model = attempt == 0 ? best : other;
    choose_first_centres(params, planned.plan, {*source, problem.cols, input.weights.data, input.centres}, attempt,
                         model.centres.mutable_view(), resources);
    const std::unique_ptr<KMeansBackend> backend = make_kmeans_backend(problem, planned.plan, sample, resources);
    ProgressMeter meter("kmeans", problem.rows * (params.iterations + (params.compute_labels ? 1 : 0)), resources);
    const KMeansRun run{params,    problem,  planned.plan, *source,  input.weights.data,
                        tolerance, *backend, meter,        resources};
    KMeansOutcome outcome;
    outcome.centres = model.centres.mutable_view();
    outcome.counts = model.counts.as<double>();
    outcome.labels = model.labels.as<int32_t>();
    outcome.keys = keys.as<float>();
    params.batch_size > 0 ? run_mini_batches(run, attempt, outcome) : run_lloyd(run, outcome);
    meter.finish();
    model.objective = outcome.objective;
    model.history = std::move(outcome.history);
    model.iterations = outcome.iterations;
    if (attempt > 0 && other.objective < best.objective) std::swap(best, other);
  }
  if (!params.compute_labels) {
    best.labels = HostBuffer();
    best.label_count = 0;
  }
  return best;
}

// Trains on `count` rows drawn at random. Labels and objective are those of all rows.
KMeansModel fit_sample(const KMeansParams& params, const KMeansRows& rows, const KMeansInput& input, int64_t count,
                       const Resources& resources) {
  const int64_t cols = rows.info.cols;
  MatrixBuffer sample(rows.info.dtype, count, cols, "the sampled rows", resources);
  std::vector<float> weights;
  {
    const std::vector<uint32_t> drawn =
        sample_rows(CounterRng(params.seed, kSubsampleStream), rows.info.rows, count, resources);
    gather(*rows.open(1, resources), drawn, sample.mutable_view(), resources);
    for (const uint32_t row : drawn) {
      if (input.weights.data != nullptr) weights.push_back(input.weights[row]);
    }
  }
  KMeansInput sampled = input;
  if (input.weights.data != nullptr) sampled.weights = {weights.data(), count, {}};
  KMeansParams training = params;
  training.compute_labels = false;
  KMeansModel model = fit_all_rows(training, rows_of(sample.view()), sampled, resources);
  if (!params.compute_labels) return model;
  sample = MatrixBuffer();
  model.labels = HostBuffer(rows.info.rows * static_cast<int64_t>(sizeof(int32_t)), "the labels", resources);
  model.label_count = rows.info.rows;
  model.objective = 0;
  assign_kmeans(
      params, model.centres.view(), rows,
      [&](int64_t first, int64_t n, const int32_t* labels, const float* keys) {
        std::copy_n(labels, n, model.labels.as<int32_t>() + first);
        const float* const w = input.weights.data == nullptr ? nullptr : input.weights.data + first;
        for (int64_t at = 0; at < n; at += kSumBlock) {
          model.objective += objective_of(keys + at, w == nullptr ? w : w + at, std::min(kSumBlock, n - at));
        }
      },
      resources);
  return model;
}

}  // namespace

KMeansRows rows_of(const MatrixView& view) {
  return {RowsInfo(view), true, [view](int64_t, const Resources&) { return std::make_unique<ViewSource>(view); }};
}

KMeansRows rows_of(const VectorFile& file) {
  return {{file.rows(), file.cols(), file.dtype()}, false, [&file](int64_t most, const Resources& resources) {
            auto source = std::make_unique<FileSource>(file);
            source->open(most, resources);
            return source;
          }};
}

Device resolve_kmeans_device(const KMeansProblem& problem, const Resources& resources) {
  Device device = resources.device();
  const bool on_gpu = !problem.space.host_readable();
  if (device.kind == DeviceKind::automatic && on_gpu) device = Device::cuda(problem.space.device);
  if (on_gpu && device != Device::cuda(problem.space.device)) {
    const std::string text =
        fmt::format("rows in the memory of cuda:{} were given to k-means on {}; run it there, or copy them to the host",
                    problem.space.device, name_of(device));
    if (device.kind == DeviceKind::cpu) throw Unsupported(text);
    throw InvalidArgument(text);
  }
  if (device.kind == DeviceKind::automatic) {
    device = kmeans_worth_a_gpu(problem, resources.threads())
                 ? choose_kmeans_device(problem, resources.threads(), cuda_devices())
                 : Device::cpu();
    const auto plan_there = [&](const PlanBudget& budget) { return plan_for(problem, device, budget); };
    if (device != Device::cpu() && !plan_fits(plan_there, resources)) device = Device::cpu();  // it is busy or small
    resources.log(LogLevel::info, fmt::format("k-means of {} x {} vectors to {} centres on {}", problem.rows,
                                              problem.cols, problem.clusters, name_of(device)));
  }
  return device.kind == DeviceKind::cuda ? usable_gpu(device).device : device;
}

PlannedKMeans plan_kmeans(const KMeansProblem& problem, const Resources& resources) {
  const Device device = resolve_kmeans_device(problem, resources);
  return plan_and_reserve<KMeansPlan>([&](const PlanBudget& budget) { return plan_for(problem, device, budget); },
                                      resources);
}

KMeansModel fit_kmeans(const KMeansParams& params, const KMeansRows& rows, const KMeansInput& input,
                       const Resources& outer) {
  const int64_t most = params.max_points_per_centre;
  const bool samples = most > 0 && most < rows.info.rows / params.clusters;
  const Resources resources = outer.with_device(resolve_kmeans_device(problem_of(params, rows, true), outer));
  KMeansModel model = samples ? fit_sample(params, rows, input, most * params.clusters, resources)
                              : fit_all_rows(params, rows, input, resources);
  if (!std::isfinite(model.objective)) {
    resources.log(LogLevel::warning,
                  "k-means: squared distances are beyond the range of f32, so rows are not told apart well; scale the "
                  "data down");
  }
  return model;
}

void assign_kmeans(const KMeansParams& params, const MatrixView& centres, const KMeansRows& rows, const KeySink& sink,
                   const Resources& outer) {
  if (rows.info.rows == 0) return;
  KMeansParams shape = params;
  shape.clusters = centres.rows();
  const KMeansProblem problem = problem_of(shape, rows, false);
  const PlannedKMeans planned = plan_kmeans(problem, outer);
  const Resources& resources = planned.resources();
  const int64_t piece = std::min(planned.plan.piece_rows, rows.info.rows);
  const std::unique_ptr<RowSource> source = rows.open(piece, resources);
  const std::unique_ptr<KMeansBackend> backend =
      make_kmeans_backend(problem, planned.plan, sample_data(*source, problem.cols, resources), resources);
  const HostBuffer arrays(piece * 8, "labels and distances", resources);
  auto* const labels = arrays.as<int32_t>();
  auto* const keys = reinterpret_cast<float*>(labels + piece);
  ProgressMeter meter("assign", problem.rows, resources);
  backend->set_centres(centres);
  for (int64_t first = 0; first < problem.rows; first += piece) {
    const int64_t count = std::min(piece, problem.rows - first);
    const MatrixView part = source->fetch(first, count);
    if (params.check_finite) check_rows_finite(part, first, meter, resources);
    backend->set_rows({count, labels, keys, nullptr});
    backend->begin_pass(false);
    backend->scan(part, 0, meter);
    backend->get_rows();
    sink(first, count, labels, keys);
    meter.poll();
  }
  meter.finish();
}

}  // namespace kith
