#include "cluster/kmeans_fit.hpp"

#include <kith/error.hpp>

#include "cluster/data_survey.hpp"
#include "cluster/first_centres.hpp"
#include "cluster/kmeans_checks.hpp"
#include "cluster/kmeans_run.hpp"
#include "cluster/nearest_centre.hpp"
#include "cluster/row_sample.hpp"
#include "core/dispatch.hpp"
#include "core/memory_budget.hpp"
#include "exact/sample_mean.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr int64_t kDouble = sizeof(double);
constexpr uint64_t kSubsampleStream = 0;  // the runs' streams begin after it

KMeansProblem problem_of(const KMeansParams& params, const KMeansRows& rows, bool fits) {
  KMeansProblem problem;
  problem.rows = rows.info.rows;
  problem.cols = rows.info.cols;
  problem.dtype = rows.info.dtype;
  problem.clusters = params.clusters;
  problem.spherical = params.spherical;
  problem.in_memory = rows.in_memory;
  problem.adds_up = fits;
  if (fits) {
    problem.sampled_rows = rows_to_choose_from(params, rows.info.rows);
    problem.batch_rows = std::min(params.batch_size, rows.info.rows);
  }
  return problem;
}

// Checks the values and finds the tolerance in the centres' unit.
double survey(const KMeansParams& params, const KMeansProblem& problem, const KMeansPlan& plan, RowSource& source,
              const std::vector<float>& origin, const Resources& resources) {
  const bool check = params.check_finite && problem.dtype != DType::u8 && problem.dtype != DType::i8;
  if (!check && params.tol == 0) return 0;
  ProgressMeter meter("survey", problem.rows, resources);
  DataSurvey survey(origin, plan.piece_rows, resources);
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
  const KMeansProblem problem = problem_of(params, rows, true);
  KMeansModel best = empty_model(params, problem.rows, problem.cols, outer);
  KMeansModel other;
  if (params.n_init > 1) other = empty_model(params, problem.rows, problem.cols, outer);
  best.objective = std::numeric_limits<double>::infinity();

  const PlannedKMeans planned = plan_kmeans(problem, outer);
  const Resources& resources = planned.memory->resources();
  const std::unique_ptr<RowSource> source = rows.open(planned.plan.piece_rows, resources);
  const std::vector<float> origin = sample_mean(*source, problem.cols);
  const double tolerance = survey(params, problem, planned.plan, *source, origin, resources);
  const HostBuffer keys(problem.rows * static_cast<int64_t>(sizeof(float)), "the distances", resources);
  for (int64_t attempt = 0; attempt < params.n_init; ++attempt) {
    KMeansModel& model = attempt == 0 ? best : other;
    choose_first_centres(params, {*source, problem.cols, input.weights.data, input.centres}, attempt,
                         model.centres.mutable_view(), resources);
    const std::unique_ptr<KMeansBackend> backend = make_kmeans_backend(problem, planned.plan, origin, resources);
    ProgressMeter meter("kmeans", problem.rows * (params.iterations + (params.compute_labels ? 1 : 0)), resources);
    const KMeansRun run{params,    problem,  planned.plan, *source,  input.weights.data,
                        tolerance, *backend, meter,        resources};
    KMeansOutcome outcome;
    outcome.centres = model.centres.mutable_view();
    outcome.counts = model.counts.as<double>();
    outcome.labels = model.labels.as<int32_t>();
    outcome.keys = keys.as<float>();
    std::fill_n(outcome.labels, problem.rows, kNoLabel);
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
    gather(*rows.open(1, resources), drawn, sample.mutable_view());
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
  return {{view.rows(), view.cols(), view.dtype()}, true, [view](int64_t, const Resources&) {
            return std::make_unique<ViewSource>(view);
          }};
}

KMeansRows rows_of(const VectorFile& file) {
  return {{file.rows(), file.cols(), file.dtype()}, false, [&file](int64_t most, const Resources& resources) {
            auto source = std::make_unique<FileSource>(file);
            source->open(most, resources);
            return source;
          }};
}

PlannedKMeans plan_kmeans(const KMeansProblem& problem, const Resources& resources) {
  if (resources.device().kind == DeviceKind::cuda) {
    if (!built_with_cuda()) throw_no_cuda();
    throw Unsupported("k-means runs on the CPU alone; use device cpu or auto");
  }
  constexpr int kTries = 8;  // another call may take what this one has just planned with
  for (int i = 1;; ++i) {
    PlanBudget budget{resources.host_memory()->available(), 0, resources.threads()};
    KMeansPlan plan;
    try {  // with half of what is left, where that will do: other calls want to work too
      plan = plan_kmeans_cpu(problem, {budget.host / 2, 0, budget.threads});
    } catch (const OutOfMemory&) {
      plan = plan_kmeans_cpu(problem, budget);
    }
    try {
      return {plan, std::make_unique<Reservation>(plan.host_bytes, 0, resources)};
    } catch (const OutOfMemory&) {
      if (i == kTries) throw;
    }
  }
}

KMeansModel fit_kmeans(const KMeansParams& params, const KMeansRows& rows, const KMeansInput& input,
                       const Resources& resources) {
  const int64_t most = params.max_points_per_centre;
  const bool samples = most > 0 && most < rows.info.rows / params.clusters;
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
  const Resources& resources = planned.memory->resources();
  const int64_t piece = std::min(planned.plan.piece_rows, rows.info.rows);
  const std::unique_ptr<RowSource> source = rows.open(piece, resources);
  const std::unique_ptr<KMeansBackend> backend =
      make_kmeans_backend(problem, planned.plan, sample_mean(*source, problem.cols), resources);
  const HostBuffer arrays(piece * 8, "labels and distances", resources);
  auto* const labels = arrays.as<int32_t>();
  auto* const keys = reinterpret_cast<float*>(labels + piece);
  ProgressMeter meter("assign", problem.rows, resources);
  backend->set_centres(centres);
  for (int64_t first = 0; first < problem.rows; first += piece) {
    const int64_t count = std::min(piece, problem.rows - first);
    const MatrixView part = source->fetch(first, count);
    if (params.check_finite) check_rows_finite(part, first, meter, resources);
    std::fill_n(labels, count, kNoLabel);
    backend->assign(part, labels, keys, meter);
    sink(first, count, labels, keys);
    meter.poll();
  }
  meter.finish();
}

}  // namespace kith
