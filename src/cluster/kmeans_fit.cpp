#include "cluster/kmeans_fit.hpp"

#include "cluster/data/data_survey.hpp"
#include "cluster/data/kmeans_checks.hpp"
#include "cluster/start/first_centres.hpp"
#include "core/typed_row.hpp"
#include "cuda/resolve_device.hpp"
#include "kernels/assign/rows_seen.hpp"
#include "rows/row_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace kith {
namespace {

constexpr uint64_t kSubsampleStream = 0;   // the runs' streams begin after it
constexpr int64_t kCachedBytes = 1 << 20;  // of rows that a thread reads twice

PlanWithin<KMeansPlan> plan_for(const KMeansShape& shape, const KMeansRequest& request, Device device,
                                const PlanBudget& budget) {
  return plan_on(
      device, budget, [&](const PlanBudget& left) { return plan_kmeans_cpu(shape, request, left); },
      [&](const DeviceInfo& gpu, const PlanBudget& left) { return plan_kmeans_cuda(shape, request, gpu, left); });
}

bool wants_check(const KMeansParams& params, DType dtype) {
  return params.check_finite && dtype != DType::u8 && dtype != DType::i8;
}

KMeansRequest fit_request(const KMeansParams& params, const KMeansShape& shape) {
  KMeansRequest request;
  request.spherical = params.spherical;
  request.passes = params.iterations * params.n_init;
  const StartChoice start = choose_start(params, shape.rows, shape.cols);
  request.sampled_rows = start.plus_plus_rows;
  request.candidates = start.candidates;
  request.batch_rows = std::min(params.batch_size, shape.rows);
  // If the variance is not needed, a GPU checks the values while it rounds them, which saves a read of the data.
  request.check_finite = wants_check(params, shape.dtype) && params.tol == 0 && params.batch_size == 0;
  return request;
}

KMeansRequest assign_request(const KMeansParams& params, DType dtype, MemorySpace result_space) {
  KMeansRequest request;
  request.spherical = params.spherical;
  request.moves_centres = false;
  request.check_finite = wants_check(params, dtype);
  request.result_space = result_space;
  return request;
}

// Checks the values, unless the backend does, and returns the tolerance in the centres' unit.
double survey(const KMeansParams& params, const KMeansShape& shape, const KMeansPlan& plan, RowSource& source,
              const std::vector<float>& origin, const KMeansSharing* sharing, const Resources& resources) {
  const bool check = wants_check(params, shape.dtype) && !plan.checks_finite;
  if (!check && params.tol == 0) return 0;
  ProgressMeter meter("survey", shape.rows, resources);
  DataSurvey survey(origin, params.spherical, shape.space.host_readable() ? plan.piece_rows : 0, resources);
  const auto survey_part = [&](int64_t begin, int64_t rows) {
    for (int64_t first = begin; first < begin + rows; first += plan.piece_rows) {
      const int64_t count = std::min(plan.piece_rows, begin + rows - first);
      const MatrixView piece = source.fetch(first, count);
      if (params.tol == 0) {
        check_rows_finite(piece, first, resources);
      } else {
        survey.add(piece, first, check, meter, resources);
      }
      meter.add(count);
      meter.poll();
    }
  };
  sharing == nullptr ? survey_part(0, shape.rows) : sharing->survey(survey, shape.rows, shape.cols, survey_part);
  meter.finish();
  if (params.tol == 0) return 0;
  return params.tol * survey.variance();
}

// `known` is a sample of these rows, or of none.
KMeansModel fit_all_rows(const KMeansParams& params, const KMeansRows& rows, const KMeansInput& input,
                         const DataSample& known, const KMeansSharing* sharing, const Resources& outer) {
  const KMeansShape shape(rows.info, params.clusters, input.weights.data != nullptr);
  const KMeansRequest request = fit_request(params, shape);
  KMeansModel best = empty_model(params.clusters, shape.rows, shape.cols, outer);
  KMeansModel other;
  if (params.n_init > 1) other = empty_model(params.clusters, shape.rows, shape.cols, outer);

  const KMeansShape own_shape = sharing == nullptr ? shape : sharing->own_shape(shape);
  const PlannedKMeans planned = plan_kmeans(own_shape, request, outer);
  const Resources& resources = planned.resources();
  const std::unique_ptr<RowSource> source = rows.open(planned.plan.piece_rows, resources);
  const DataSample sample = known.origin.empty() ? sample_data(*source, shape.cols, resources) : known;
  const double tolerance = survey(params, shape, planned.plan, *source, sample.origin, sharing, resources);
  // The distances of all rows, though the plan may be for a part of them.
  const HostArray<float> keys(shape.rows, "the distances", own_shape.rows == shape.rows ? resources : outer);
  for (int64_t attempt = 0; attempt < params.n_init; ++attempt) {
    KMeansModel& model = attempt == 0 ? best : other;
    const auto make_backend = [&] {
      std::unique_ptr<KMeansBackend> own = make_kmeans_backend(own_shape, request, planned.plan, sample, resources);
      return sharing == nullptr ? std::move(own) : sharing->share(std::move(own), shape, request, planned.plan, outer);
    };
    // The backend is made before the start only if that needs it: k-means++ uses the same memory.
    std::unique_ptr<KMeansBackend> backend = request.candidates > 0 ? make_backend() : nullptr;
    const KMeansRowArrays arrays{shape.rows, model.labels.data(), keys.data(), input.weights.data};
    const auto begin = [&](const KMeansPlan& plan, const Resources& used) {
      choose_first_centres(params, plan, {*source, input.centres, arrays, backend.get()}, attempt,
                           model.centres.mutable_view(), used);
    };
    if (sharing == nullptr || request.candidates > 0) {
      begin(planned.plan, resources);
    } else {
      const auto choose = [&] {
        if (own_shape.rows == shape.rows) return begin(planned.plan, resources);
        const PlannedKMeans start = plan_kmeans(shape, request, outer);  // which looks at the rows of all parts
        begin(start.plan, start.resources());
      };
      sharing->begin(choose, model.centres.mutable_view());
    }
    if (backend == nullptr) backend = make_backend();
    ProgressMeter meter("kmeans", shape.rows * (params.iterations + (params.compute_labels ? 1 : 0)), resources);
    const KMeansRun run{params,      shape,     planned.plan, *source, input.weights.data,
                        keys.data(), tolerance, *backend,     meter,   resources};
    model.objective = 0;
    model.history.clear();
    model.iterations = 0;
    params.batch_size > 0 ? run_mini_batches(run, attempt, model) : run_lloyd(run, model);
    meter.finish();
    if (attempt > 0 && other.objective < best.objective) std::swap(best, other);
  }
  if (!params.compute_labels) best.labels = HostArray<int32_t>();
  return best;
}

// Trains on `count` rows drawn at random. Labels and objective are those of all rows.
KMeansModel fit_sample(const KMeansParams& params, const KMeansRows& rows, const KMeansInput& input, int64_t count,
                       const KMeansSharing* sharing, const Resources& resources) {
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
  KMeansModel model = fit_all_rows(training, rows_of(sample.view()), sampled, {}, sharing, resources);
  if (!params.compute_labels) return model;
  sample = MatrixBuffer();
  model.labels = HostArray<int32_t>(rows.info.rows, "the labels", resources);
  model.objective = 0;
  assign_kmeans(
      {params, model.centres.view(), rows},
      [&](const AssignedRows& some) {
        std::copy_n(some.labels, some.count, model.labels.data() + some.first);
        const float* const w = input.weights.data == nullptr ? nullptr : input.weights.data + some.first;
        for (int64_t at = 0; at < some.count; at += kSumBlock) {
          const int64_t block = std::min(kSumBlock, some.count - at);
          model.objective += std::ldexp(objective_of(some.keys + at, w == nullptr ? w : w + at, block),
                                        params.spherical ? 0 : -2 * some.exponent);
        }
      },
      resources);
  return model;
}

}  // namespace

KMeansModel empty_model(int64_t clusters, int64_t rows, int64_t cols, const Resources& resources) {
  KMeansModel model;
  model.centres = MatrixBuffer(DType::f32, clusters, cols, "the centres", resources);
  model.counts = HostArray<double>(clusters, "the centres' weights", resources);
  model.labels = HostArray<int32_t>(rows, "the labels", resources);
  return model;
}

KMeansRows rows_of(const MatrixView& view) {
  return {RowsInfo(view), [view](int64_t, const Resources&) { return std::make_unique<ViewSource>(view); }};
}

KMeansRows rows_of(const VectorFile& file) {
  return {RowsInfo(file), [&file](int64_t most, const Resources& resources) {
            auto source = std::make_unique<FileSource>(file);
            source->open(most, resources);
            return source;
          }};
}

Device resolve_kmeans_device(const KMeansShape& shape, const KMeansRequest& request, const Resources& resources) {
  const auto fits = [&](Device device) {
    return plan_fits([&](const PlanBudget& budget) { return plan_for(shape, request, device, budget); }, resources);
  };
  const auto description = [&] {
    return fmt::format("k-means of {} x {} vectors to {} centres", shape.rows, shape.cols, shape.clusters);
  };
  return choose_device({"k-means", description}, {shape.space, request.result_space}, work_of(shape, request), fits,
                       resources);
}

PlannedKMeans plan_kmeans(const KMeansShape& shape, const KMeansRequest& request, const Resources& resources) {
  const Device device = resolve_kmeans_device(shape, request, resources);
  return plan_and_reserve<KMeansPlan>(
      "k-means", [&](const PlanBudget& budget) { return plan_for(shape, request, device, budget); }, resources);
}

KMeansModel fit_kmeans(const KMeansParams& params, const KMeansRows& given, const KMeansInput& input,
                       const Resources& outer, const KMeansSharing* sharing) {
  const int64_t most = params.max_points_per_centre;
  const bool samples = most > 0 && most < given.info.rows / params.clusters;
  const KMeansShape shape(given.info, params.clusters);
  const Resources resources = outer.with_device(resolve_kmeans_device(shape, fit_request(params, shape), outer));
  KMeansInput scaled = input;
  MatrixBuffer centres;
  DataSample sample;
  int exponent = 0;
  if (!params.spherical) {  // directions have no scale
    if (params.init == KMeansInit::given) centres = scaled_copy(input.centres, 0, resources);
    sample = sample_data(*given.open(1, resources), given.info.cols, resources);
    exponent = scale_exponent(given, sample, centres.view(), resources);
    scale_values(centres.mutable_view(), exponent);
    if (exponent != 0) {
      scaled.centres = centres.view();
    } else {
      centres = MatrixBuffer();
    }
  }
  const KMeansRows rows = scaled_rows(given, exponent, resources);
  KMeansModel model =
      samples ? fit_sample(params, rows, scaled, most * params.clusters, sharing, resources)
              : fit_all_rows(params, rows, scaled, exponent == 0 ? sample : DataSample(), sharing, resources);
  scale_back(model, exponent);
  if (!std::isfinite(model.objective)) {
    resources.log(
        LogLevel::warning,
        "k-means: squared distances overflow f32, so assignments are unreliable; some rows are far larger than "
        "most, scale the data down or leave these out");
  }
  return model;
}

namespace {

// The footprint of the smallest plan, whether the rows are scaled or not.
template <typename RequestFor>
Footprint least_plan_of(int64_t clusters, const RowsInfo& rows, const Resources& resources, const RequestFor& request_for) {
  const Device device = counted_device(rows.space, resources);
  const auto least = [&](const KMeansShape& shape) {
    const KMeansRequest request = request_for(shape);
    return least_plan([&](const PlanBudget& budget) { return plan_for(shape, request, device, budget); }, resources);
  };
  RowsInfo scaled = rows;  // what is scaled is read like a file
  scaled.in_memory = false;
  return least(KMeansShape(rows, clusters)).then(least(KMeansShape(scaled, clusters)));
}

// The memory of the sample, and of a scaled piece of rows.
Footprint looking_footprint(const RowsInfo& rows) {
  return array_footprint<float>(256, rows.cols).beside({scaled_read_bytes(rows)});
}

}  // namespace

Footprint assign_footprint(const KMeansParams& params, const RowsInfo& rows, const Resources& resources) {
  // The centres may be scaled.
  return least_plan_of(params.clusters, rows, resources,
                       [&](const KMeansShape& shape) { return assign_request(params, shape.dtype, {}); })
      .beside(array_footprint<float>(params.clusters, rows.cols))
      .beside(looking_footprint(rows));
}

Footprint fit_footprint(const KMeansParams& params, const RowsInfo& rows, const Resources& resources) {
  const KMeansShape shape(rows, params.clusters);
  const Footprint centres =
      array_footprint<float>(params.clusters, shape.cols).beside(array_footprint<double>(params.clusters));
  const Footprint models = centres.beside(array_footprint<int32_t>(shape.rows)).times(params.n_init > 1 ? 2 : 1);
  const int64_t most = params.max_points_per_centre;
  Footprint sample;
  if (most > 0 && most < shape.rows / params.clusters) {
    sample = Footprint{shape.row_bytes()}
                 .times(most * params.clusters)
                 .beside(array_footprint<uint8_t>(shape.rows / 8))
                 .beside(array_footprint<uint32_t>(shape.rows));
  }
  // Centres to begin with may be scaled.
  return least_plan_of(params.clusters, rows, resources,
                       [&](const KMeansShape& planned) { return fit_request(params, planned); })
      .beside(models)
      .beside(sample)
      .beside(centres)
      .beside(looking_footprint(rows));
}

void scale_back(KMeansModel& model, int exponent) {
  if (exponent == 0) return;
  scale_values(model.centres.mutable_view(), -exponent);
  model.objective = std::ldexp(model.objective, -2 * exponent);
  for (double& objective : model.history) objective = std::ldexp(objective, -2 * exponent);
}

namespace {

// Rows and centres times 2^exponent, as they are compared, and where the labels go.
struct AssignedData {
  KMeansRows rows;
  MatrixView centres;
  MemorySpace result_space;
  int exponent = 0;
};

// Calls begin(most rows of a piece, device, resources), then assign(backend, rows, first, exponent, meter) for each
// piece. `sample_of` samples an open source.
template <typename SampleOf, typename Begin, typename Assign>
void assign_pieces(const KMeansParams& params, const AssignedData& data, const PlannedKMeans& planned,
                   const SampleOf& sample_of, const Begin& begin, const Assign& assign) {
  const KMeansShape shape(data.rows.info, data.centres.rows());
  const KMeansRequest request = assign_request(params, shape.dtype, data.result_space);
  const Resources& resources = planned.resources();
  const Device device = planned.plan.device();
  int64_t piece = std::min(planned.plan.piece_rows, shape.rows);
  const std::unique_ptr<RowSource> source = data.rows.open(piece, resources);
  if (device.kind == DeviceKind::cpu && shape.in_memory) {  // looked at and assigned while they are in the cache
    piece = std::min(piece, resources.threads() * whole_sum_blocks(kCachedBytes / shape.row_bytes()));
  }
  const std::unique_ptr<KMeansBackend> backend =
      make_kmeans_backend(shape, request, planned.plan, sample_of(*source, resources), resources);
  begin(piece, device, resources);
  const bool checks = params.check_finite && !planned.plan.checks_finite;
  ProgressMeter meter("assign", shape.rows, resources);
  backend->set_centres(data.centres);
  for (int64_t first = 0; first < shape.rows; first += piece) {
    const MatrixView part = source->fetch(first, std::min(piece, shape.rows - first));
    if (checks) check_rows_finite(part, first, resources);
    assign(*backend, part, first, data.exponent, meter);
    meter.poll();
  }
  meter.finish();
}

// Plans for the device that suits the rows before scaling.
PlannedKMeans plan_assignment(const AssignTask& task, const AssignedData& data, const Resources& outer) {
  const KMeansShape given(task.rows.info, data.centres.rows());
  const Device device = resolve_kmeans_device(given, assign_request(task.params, given.dtype, data.result_space), outer);
  const KMeansShape shape(data.rows.info, data.centres.rows());
  return plan_kmeans(shape, assign_request(task.params, shape.dtype, data.result_space), outer.with_device(device));
}

template <typename Begin, typename Assign>
void for_assigned_pieces(const AssignTask& task, MemorySpace result_space, const Resources& outer, const Begin& begin,
                         const Assign& assign) {
  const KMeansRows& given = task.rows;
  if (given.info.rows == 0) return;
  MatrixBuffer scaled;
  AssignedData data{given, task.centres, result_space};
  const DataSample sample = sample_data(*given.open(1, outer), given.info.cols, outer);
  if (!task.params.spherical) {
    data.exponent = scale_exponent(given, sample, task.centres, outer);
    if (data.exponent != 0) {
      scaled = scaled_copy(task.centres, data.exponent, outer);
      data.centres = scaled.view();
      data.rows = scaled_rows(given, data.exponent, outer);
    }
  }
  const PlannedKMeans planned = plan_assignment(task, data, outer);
  const auto sample_of = [&](RowSource& source, const Resources& inner) {
    return data.exponent == 0 ? sample : sample_data(source, given.info.cols, inner);
  };
  assign_pieces(task.params, data, planned, sample_of, begin, assign);
}

bool plain_values(const MatrixView& centres) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < centres.rows(); ++i) {
    const auto* const centre = typed_row<float>(centres, i);
    for (int64_t c = 0; c < centres.cols(); ++c) {
      largest = std::max(largest, std::bit_cast<uint32_t>(centre[c]) & 0x7FFFFFFFu);
    }
  }
  return largest <= kLargestPlainBits;
}

// Rows on a GPU that are compared pair by pair need a sample only to decide about scaling, which is hardly ever needed.
// So they are assigned unscaled, and the pass itself usually shows that this was right (rows_seen.hpp). Returns false
// if they were not assigned or need scaling. Not used under a limit, of which the plan takes all.
template <typename Assign>
bool assign_before_sampling(const AssignTask& task, MemorySpace result_space, const Resources& outer,
                            const Assign& assign) {
  const RowsInfo& info = task.rows.info;
  if (info.rows == 0 || info.space.host_readable() || task.params.spherical) return false;
  if (outer.options().device_memory_limit != kNoLimit) return false;
  if (!compares_pairs({info.rows, 0, task.centres.rows(), info.cols, info.dtype, KeyKind::squared_l2, true})) {
    return false;
  }
  const AssignedData data{task.rows, task.centres, result_space};
  const PlannedKMeans planned = plan_assignment(task, data, outer);
  const KMeansCudaPlan* const cuda = planned.plan.cuda();
  if (cuda == nullptr || !cuda->search.compares_pairs()) return false;
  bool plain = false;
  assign_pieces(
      task.params, data, planned, [](RowSource&, const Resources&) { return DataSample(); },
      [](int64_t, Device, const Resources&) {},
      [&](KMeansBackend& backend, const MatrixView& part, int64_t first, int exponent, ProgressMeter& meter) {
        assign(backend, part, first, exponent, meter);
        plain = backend.plain_rows();
      });
  return (plain && plain_values(task.centres)) || scale_exponent(task.rows, task.centres, outer) == 0;
}

}  // namespace

void assign_kmeans(const AssignTask& task, const KeySink& sink, const Resources& resources) {
  HostArray<int32_t> labels;
  HostArray<float> keys;
  for_assigned_pieces(
      task, MemorySpace::host(), resources,
      [&](int64_t piece, Device device, const Resources& planned) {
        labels = HostArray<int32_t>(piece, "labels", planned);
        if (task.wants_keys || device.kind != DeviceKind::cpu) keys = HostArray<float>(piece, "distances", planned);
      },
      [&](KMeansBackend& backend, const MatrixView& part, int64_t first, int exponent, ProgressMeter& meter) {
        float* const to = keys.size() > 0 ? keys.data() : nullptr;
        backend.set_rows({part.rows(), labels.data(), to, nullptr, first});
        backend.begin_pass({});
        backend.scan(part, 0, meter);
        backend.get_rows();
        sink({first, part.rows(), labels.data(), to, exponent});
      });
}

void assign_kmeans(const AssignTask& task, const AssignedOnDevice& out, const Resources& resources) {
  const auto assign = [&](KMeansBackend& backend, const MatrixView& part, int64_t first, int exponent,
                          ProgressMeter& meter) {
    backend.set_rows({part.rows(), out.labels == nullptr ? nullptr : out.labels + first,
                      out.distances == nullptr ? nullptr : out.distances + first, nullptr, first, true});
    backend.begin_pass({});
    backend.scan(part, 0, meter);
    backend.finish_on_device(exponent);
  };
  if (assign_before_sampling(task, out.space, resources, assign)) return;
  for_assigned_pieces(
      task, out.space, resources, [](int64_t, Device, const Resources&) {}, assign);
}

}  // namespace kith
