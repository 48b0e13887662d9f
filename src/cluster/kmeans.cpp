#include <kith/kmeans.hpp>

#include <kith/error.hpp>
#include <kith/refused_row.hpp>

#include "cluster/data/data_scale.hpp"
#include "cluster/data/kmeans_checks.hpp"
#include "cluster/kmeans_fit.hpp"
#include "cluster/shared/kmeans_devices.hpp"
#include "cluster/shared/kmeans_ranks.hpp"
#include "cluster/start/first_centres.hpp"
#include "cluster/steps/centre_means.hpp"
#include "cluster/steps/kmeans_run.hpp"
#include "core/float_mode.hpp"
#include "core/published.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "exact/pairwise_cuda.hpp"
#include "exact/search_checks.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "ranks/parts.hpp"
#include "ranks/transfer.hpp"
#include "rows/narrowed_rows.hpp"
#include "rows/row_blocks.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <string_view>

namespace kith {

// A prediction holds on to the model that it began with.
struct KMeans::State {
  const KMeansParams params;
  Published<KMeansModel> model{""};  // one without centres at first

  explicit State(const KMeansParams& given) : params(given) { model.publish(KMeansModel()); }
  std::shared_ptr<const KMeansModel> fitted() const {
    std::shared_ptr<const KMeansModel> now = model.get();
    if (now->centres.rows() > 0) return now;
    throw InvalidState("this KMeans has no centres yet; fit it first");
  }
};

namespace {

VectorView<const int32_t> labels_of(const KMeansModel& model) { return {model.labels.data(), model.labels.size(), {}}; }
VectorView<const double> counts_of(const KMeansModel& model) { return {model.counts.data(), model.counts.size(), {}}; }

// Converts a key to what is reported: the distance, or the inner product.
float distance_of(float key, int exponent, bool spherical) {
  if (spherical) return 0.0f - key;
  return exponent == 0 ? std::sqrt(key) : std::ldexp(std::sqrt(key), -exponent);
}

void check_same_columns(int64_t rows, int64_t centres) {
  if (rows == centres) return;
  throw InvalidArgument(
      fmt::format("the rows have {} columns and the centres {}; they must be the same", rows, centres));
}

void check_prediction(std::string_view what, const void* data, int64_t size, int64_t rows) {
  if (data == nullptr || size == rows) return;
  throw InvalidArgument(fmt::format("the {} have room for {} rows; there are {}", what, size, rows));
}

void check_snapshot(const KMeansSnapshot& given, int64_t clusters) {
  const MatrixView& centres = given.centres;
  check_host_readable("centres", centres);
  if (centres.dtype() != DType::f32 || centres.rows() != clusters || centres.cols() < 1) {
    throw InvalidArgument(fmt::format("the snapshot's centres are {} x {} {}; they must be {} rows of f32",
                                      centres.rows(), centres.cols(), name_of(centres.dtype()), clusters));
  }
  if (!given.offset.empty() && static_cast<int64_t>(given.offset.size()) != centres.cols()) {
    throw InvalidArgument(
        fmt::format("the snapshot has an offset of {} values for {} columns", given.offset.size(), centres.cols()));
  }
  if (given.counts.size != clusters || given.iterations < 0) {
    throw InvalidArgument(fmt::format("the snapshot has {} counts for {} centres, and {} iterations", given.counts.size,
                                      clusters, given.iterations));
  }
  const int32_t* const labels = given.labels.data;
  const auto known = [&](int32_t label) { return label >= 0 && label < clusters; };
  const int32_t* const wrong = std::find_if_not(labels, labels + given.labels.size, known);
  if (wrong != labels + given.labels.size) {
    throw InvalidArgument(
        fmt::format("the snapshot's label {} is {}; there are {} centres", wrong - labels, *wrong, clusters));
  }
}

// Restores centres to which no row was assigned: scaling may have cost them digits.
void keep_where_it_was(const KMeansModel& former, KMeansModel& next) {
  const MatrixView old = former.centres.view();
  const MutableMatrixView centres = next.centres.mutable_view();
  for (int64_t c = 0; c < old.rows(); ++c) {
    if (next.counts[c] != former.counts[c]) continue;
    std::memcpy(centres.row(c), old.row(c), static_cast<size_t>(old.cols()) * sizeof(float));
  }
}

// All distances between rows and centres: the centres are known to be finite.
void transform_cuda(const KMeansParams& params, Device device, const MatrixView& rows, const MatrixView& centres,
                    const MutableMatrixView& out, const Resources& resources) {
  if (rows.rows() == 0) return;
  const Metric metric = params.spherical ? Metric::inner_product : Metric::l2;
  SearchShape shape = check_search(RowsInfo(rows), RowsInfo(centres), metric);
  shape.base_checked = true;
  const SearchTask task =
      search_of(shape, {.what = Wanted::all_keys, .check_finite = params.check_finite, .result_space = out.space()});
  within_limits(
      "the distances", resources, [&] { return least_plan(task, device, resources); },
      [&] {
        pairwise_cuda(task, plan_knn(task, device, resources), rows, centres, out, {"data", "centres", "transform"});
      });
}

// The same on the CPU. `scratch`: a row for each thread.
void transform_cpu(const KMeansParams& params, const MatrixView& rows, const MatrixView& centres,
                   const MutableMatrixView& out, const HostArray<float>& scratch, const Resources& resources) {
  if (params.check_finite) check_rows_finite(rows, 0, resources);
  check_host_readable("output", out);
  std::vector<uint32_t> every(static_cast<size_t>(centres.rows()));
  std::iota(every.begin(), every.end(), 0u);
  const KeyKind kind = params.spherical ? KeyKind::inner_product : KeyKind::l2;
  const auto transform_one = [&](int64_t i, int64_t, int slot) {
    float* const row = scratch.data() + slot * rows.cols();
    auto* const keys = typed_row<float>(out, i);
    widen_row(rows, i, row);
    canonical_keys_cpu(kind, {row, 0.0}, centres, every.data(), centres.rows(), keys);
    for (int64_t c = 0; params.spherical && c < centres.rows(); ++c) keys[c] = 0.0f - keys[c];
  };
  for_row_blocks("transform", rows.rows(), resources, transform_one, 1);
}

// All distances between rows and all centres, on either device.
void transform_rows(const KMeansParams& params, const MatrixView& rows, const MatrixView& all,
                    const MutableMatrixView& out, const Resources& resources) {
  check_kmeans_rows("rows", RowsInfo(rows));
  check_same_columns(rows.cols(), all.cols());
  if (out.dtype() != DType::f32 || out.rows() != rows.rows() || out.cols() != all.rows()) {
    throw InvalidArgument(fmt::format("the output is {} x {} {}; it must be {} x {} f32", out.rows(), out.cols(),
                                      name_of(out.dtype()), rows.rows(), all.rows()));
  }
  const Device device = resolve_kmeans_device({RowsInfo(rows), all.rows()}, {}, resources);
  if (device.kind == DeviceKind::cuda) return transform_cuda(params, device, rows, all, out, resources);
  const int64_t floats = resources.threads() * rows.cols();
  within_limits(
      "the distances", resources, [&] { return array_footprint<float>(floats); },
      [&] { transform_cpu(params, rows, all, out, HostArray<float>(floats, "rows as f32", resources), resources); });
}

// Labels and distances of rows from which the model's offset was subtracted.
void predict_rows(const KMeansParams& params, const KMeansModel& model, const MatrixView& rows,
                  const VectorView<int32_t>& labels, const VectorView<float>& distances, const Resources& resources) {
  check_kmeans_rows("rows", RowsInfo(rows));
  check_same_columns(rows.cols(), model.centres.cols());
  check_prediction("labels", labels.data, labels.size, rows.rows());
  check_prediction("distances", distances.data, distances.size, rows.rows());
  const bool labels_there = labels.data != nullptr && !labels.space.host_readable();
  const bool distances_there = distances.data != nullptr && !distances.space.host_readable();
  if (labels_there || distances_there) {
    const MemorySpace space = labels_there ? labels.space : distances.space;
    if ((labels.data != nullptr && labels.space != space) || (distances.data != nullptr && distances.space != space)) {
      throw InvalidArgument("labels and distances lie in different memories; give both on the host or on one device");
    }
    const Resources there = resources.with_device(Device::cuda(space.device));
    return within_limits(
        "the labels", resources, [&] { return assign_footprint(params, RowsInfo(rows), there); },
        [&] {
          assign_kmeans({params, model.centres.view(), rows_of(rows), distances.data != nullptr},
                        AssignedOnDevice{labels.data, distances.data, space}, resources);
        });
  }
  const auto least = [&] { return assign_footprint(params, RowsInfo(rows), resources); };
  within_limits("the labels", resources, least, [&] {
    assign_kmeans(
        {params, model.centres.view(), rows_of(rows), distances.data != nullptr},
        [&](const AssignedRows& some) {
          if (labels.data != nullptr) std::copy_n(some.labels, some.count, labels.data + some.first);
          for (int64_t i = 0; distances.data != nullptr && i < some.count; ++i) {
            distances[some.first + i] = distance_of(some.keys[i], some.exponent, params.spherical);
          }
        },
        resources);
  });
}

Metric metric_of(const KMeansParams& params) { return params.spherical ? Metric::inner_product : Metric::sqeuclidean; }

// Calls make(rows, input, resources) with narrowed rows, and first centres less the same offset. A model without
// centres takes its offset from the rows.
template <typename Make>
KMeansModel with_narrowed_input(const KMeansParams& params, const KMeansModel& former, const MatrixView& given,
                                const KMeansInput& given_input, const Resources& resources, const Make& make) {
  return within_limits("k-means", resources, [&](const Resources& used) {
    const bool begins = former.centres.rows() == 0;
    const NarrowedRows rows = begins ? NarrowedRows("x", given, metric_of(params), used)
                                     : NarrowedRows("x", given, former.offset, OfRounding::warns, used);
    const NarrowedRows centres("init", given_input.centres, rows.offset(), OfRounding::silent, used);
    KMeansInput input = given_input;
    input.centres = centres.view();
    KMeansModel model = make(rows.view(), input, used);
    model.offset = rows.offset();
    return model;
  });
}

// Runs fit_kmeans() on all parts; each makes the whole model, and that of the first is kept.
template <typename Sharing>
KMeansModel fit_on_parts(const KMeansParams& params, const KMeansRows& rows, const KMeansInput& input,
                         const Resources& resources, const Sharing& share) {
  KMeansModel model;
  run_parts(resources, [&](Communicator& ranks, const Resources& part) {
    const auto sharing = share(ranks);
    KMeansModel own = fit_kmeans(params, rows, input, part, &sharing);
    if (ranks.rank() == 0) model = std::move(own);
  });
  return model;
}

// Whether a GPU can keep the rows, and their operands, from pass to pass.
bool fits_one_gpu(const RowsInfo& rows, Device gpu, const Resources& resources) {
  const int64_t row = rows.row_bytes() + 2 * rows.cols + 16;
  int64_t free = resources.device_memory(gpu.index)->available();
  for (const DeviceInfo& info : cuda_devices()) {
    if (info.device == gpu) free = std::min(free, info.memory_free);
  }
  return rows.rows <= free / row;
}

// Parts of CPUs share the rows and pass the sums on, as do GPUs if the rows do not fit on one. Otherwise the first GPU
// alone is faster (docs/devices.md), also than with CPUs beside it.
KMeansModel fit_shared(const KMeansParams& params, const KMeansRows& rows, const KMeansInput& input,
                       const Resources& resources) {
  if (!is_divided(rows.info.space, resources)) return fit_kmeans(params, rows, input, resources);
  const std::vector<DeviceParts> devices = resources.devices();
  const auto all_are = [&](DeviceKind kind) {
    return std::all_of(devices.begin(), devices.end(), [&](const DeviceParts& one) { return one.device.kind == kind; });
  };
  if (all_are(DeviceKind::cpu)) {
    return fit_on_parts(params, rows, input, resources, [](Communicator& ranks) { return KMeansSharedByRanks(ranks); });
  }
  if (!all_are(DeviceKind::cuda) || fits_one_gpu(rows.info, devices.front().device, resources)) {
    return fit_kmeans(params, rows, input, resources);
  }
  const bool on_host = rows.info.space.host_readable();
  wait_for_caller(resources, rows.info.space);
  const MutualReads reads(resources.parts());
  return fit_on_parts(params, rows, input, resources,
                      [&](Communicator& ranks) { return KMeansSharedByDevices(ranks, reads, on_host); });
}

// The model after one more batch of rows. A new model, so that an exception leaves the former one unchanged.
KMeansModel fit_batch(const KMeansParams& own, const KMeansModel& former, const MatrixView& given,
                      const KMeansInput& given_input, const Resources& given_resources) {
  MatrixView rows = given;
  KMeansInput input = given_input;
  Resources outer = given_resources;
  KMeansParams params = own;
  const bool begins = former.centres.rows() == 0;
  if (!begins) {
    check_same_columns(rows.cols(), former.centres.cols());
    params.clusters = 1;  // a later batch may be smaller than the number of centres
    params.init = KMeansInit::random;
  }
  check_kmeans_input(params, RowsInfo(rows), input);
  params = own;
  MatrixBuffer scaled_values;
  MatrixBuffer scaled_centres;
  int exponent = 0;
  if (!params.spherical) {
    if (begins && params.init == KMeansInit::given) scaled_centres = scaled_copy(input.centres, 0, outer);
    exponent = scale_exponent(rows_of(given), begins ? scaled_centres.view() : former.centres.view(), outer);
    scale_values(scaled_centres.mutable_view(), exponent);
    if (exponent != 0) input.centres = scaled_centres.view();
  }
  if (exponent != 0) {
    outer = outer.with_device(resolve_kmeans_device(KMeansShape(RowsInfo(given), params.clusters), {}, outer));
    scaled_values = scaled_copy(given, exponent, outer);
    rows = scaled_values.view();
  }

  const KMeansShape shape(RowsInfo(rows), params.clusters, input.weights.data != nullptr);
  KMeansRequest request;
  request.spherical = params.spherical;
  if (begins) {
    const StartChoice start = choose_start(params, rows.rows(), rows.cols());
    request.sampled_rows = start.plus_plus_rows;
    request.candidates = start.candidates;
  }
  KMeansModel next = empty_model(params.clusters, rows.rows(), rows.cols(), outer);
  const PlannedKMeans planned = plan_kmeans(shape, request, outer);
  const Resources& resources = planned.resources();
  ProgressMeter meter("kmeans", rows.rows(), resources);
  if (params.check_finite) check_rows_finite(rows, 0, resources);

  ViewSource source(rows);
  const MutableMatrixView centres = next.centres.mutable_view();
  const HostArray<float> keys(rows.rows(), "the distances", resources);
  const KMeansRowArrays arrays{rows.rows(), next.labels.data(), keys.data(), input.weights.data};
  const DataSample sample = sample_data(source, rows.cols(), resources);
  std::unique_ptr<KMeansBackend> backend;
  if (!begins || request.candidates > 0) backend = make_kmeans_backend(shape, request, planned.plan, sample, resources);
  if (begins) {
    choose_first_centres(params, planned.plan, {source, input.centres, arrays, backend.get()}, 0, centres, resources);
    std::fill_n(next.counts.data(), params.clusters, 0.0);
  } else {
    const MatrixView old = former.centres.view();
    std::copy_n(static_cast<const float*>(old.data()), old.rows() * old.cols(), static_cast<float*>(centres.data()));
    std::copy_n(former.counts.data(), params.clusters, next.counts.data());
    scale_values(centres, exponent);
  }
  if (backend == nullptr) backend = make_kmeans_backend(shape, request, planned.plan, sample, resources);
  backend->set_rows(arrays);
  backend->set_centres(centres);
  backend->begin_pass({.adds_up = true});
  backend->scan_all(source, planned.plan.piece_rows, meter);
  next.objective = backend->objective();
  next.iterations = former.iterations + 1;
  backend->move_by_batch(centres, next.counts.data());
  backend->get_centres(centres);
  backend->get_rows();
  meter.finish();
  scale_back(next, exponent);
  if (!begins && exponent != 0) keep_where_it_was(former, next);
  next.history = former.history;
  next.history.push_back(next.objective);
  return next;
}

}  // namespace

KMeans::KMeans(KMeansParams params) {
  params.validate();
  state_ = std::make_unique<State>(params);
}
KMeans::~KMeans() = default;
KMeans::KMeans(KMeans&&) noexcept = default;
KMeans& KMeans::operator=(KMeans&&) noexcept = default;

void KMeans::fit(const MatrixView& given, const KMeansInput& given_input, const Resources& given_resources) {
  const DefaultFloatMode mode;
  const auto fit_rows = [&](const MatrixView& rows, const KMeansInput& input, const Resources& resources) {
    check_kmeans_input(params(), RowsInfo(rows), input);
    const auto least = [&] { return fit_footprint(params(), RowsInfo(rows), resources); };
    return within_limits("k-means", resources, least,
                         [&] { return fit_shared(params(), rows_of(rows), input, resources); });
  };
  state_->model.publish(with_narrowed_input(params(), {}, given, given_input, given_resources, fit_rows));
}

void KMeans::fit(const VectorFile& rows, const KMeansInput& given, const Resources& resources) {
  const DefaultFloatMode mode;
  const NarrowedRows centres("init", given.centres, nullptr, OfRounding::silent, resources);
  KMeansInput input = given;
  input.centres = centres.view();
  check_kmeans_input(params(), RowsInfo(rows), input);
  const auto least = [&] {
    return Footprint{rows.memory_bytes()}.beside(fit_footprint(params(), RowsInfo(rows), resources));
  };
  state_->model.publish(within_limits("k-means", resources, least, [&] {
    const ReadMemory memory = rows.reserve_memory(resources);
    return naming_files({{"data", rows}}, [&] { return fit_shared(params(), rows_of(rows), input, resources); });
  }));
}

void KMeans::partial_fit(const MatrixView& given, const KMeansInput& given_input, const Resources& given_resources) {
  const DefaultFloatMode mode;
  if (given.rows() == 0) throw InvalidArgument("partial_fit was given no rows; give at least one");
  const std::shared_ptr<const KMeansModel> former = state_->model.get();
  const auto fit_rows = [&](const MatrixView& rows, const KMeansInput& input, const Resources& resources) {
    // As a fit, with distances and the rows scaled.
    const auto least = [&] {
      return fit_footprint(params(), RowsInfo(rows), resources)
          .beside(array_footprint<float>(rows.rows(), rows.cols() + 1));
    };
    return within_limits("k-means", resources, least,
                         [&] { return fit_batch(params(), *former, rows, input, resources); });
  };
  state_->model.publish(with_narrowed_input(params(), *former, given, given_input, given_resources, fit_rows));
}

void KMeans::predict(const MatrixView& given, const VectorView<int32_t>& labels, const VectorView<float>& distances,
                     const Resources& resources) const {
  const DefaultFloatMode mode;
  const std::shared_ptr<const KMeansModel> model = state_->fitted();
  with_narrowed("the labels", "x", given, model->offset, OfRounding::silent, resources,
                [&](const MatrixView& rows, const Resources& used) {
                  predict_rows(params(), *model, rows, labels, distances, used);
                });
}

void KMeans::predict(const VectorFile& rows, const LabelSink& sink, const Resources& resources) const {
  const DefaultFloatMode mode;
  check_kmeans_rows("rows", RowsInfo(rows));
  const std::shared_ptr<const KMeansModel> model = state_->fitted();
  check_same_columns(rows.cols(), model->centres.cols());
  if (model->offset != nullptr) {
    throw InvalidArgument(
        "the centres are of float64 vectors less an offset, which rows of a file do not lose; give what "
        "read_vectors(path) reads, not the path");
  }
  if (!sink) throw InvalidArgument("the prediction needs a sink for its results");
  const auto least = [&] {
    return Footprint{rows.memory_bytes()}.beside(assign_footprint(params(), RowsInfo(rows), resources));
  };
  within_limits("the labels", resources, least, [&] {
    const ReadMemory memory = rows.reserve_memory(resources);
    std::vector<float> distances;
    const auto pass_on = [&](const AssignedRows& some) {
      constexpr int64_t kAtOnce = 4096;
      for (int64_t at = 0; at < some.count; at += kAtOnce) {
        const int64_t part = std::min(kAtOnce, some.count - at);
        distances.resize(static_cast<size_t>(part));
        for (int64_t i = 0; i < part; ++i) {
          distances[static_cast<size_t>(i)] = distance_of(some.keys[at + i], some.exponent, params().spherical);
        }
        sink(some.first + at, part, some.labels + at, distances.data());
      }
    };
    naming_files({{"data", rows}}, [&] {
      assign_kmeans({params(), model->centres.view(), rows_of(rows)}, pass_on, resources);
    });
  });
}

void KMeans::transform(const MatrixView& given, const MutableMatrixView& out, const Resources& resources) const {
  const DefaultFloatMode mode;
  const std::shared_ptr<const KMeansModel> model = state_->fitted();
  with_narrowed("the distances", "x", given, model->offset, OfRounding::silent, resources,
                [&](const MatrixView& rows, const Resources& used) {
                  transform_rows(params(), rows, model->centres.view(), out, used);
                });
}

void KMeans::set_centres(const MatrixView& made, const Resources& resources) {
  const DefaultFloatMode mode;
  const NarrowedRows narrowed("centres", made, metric_of(params()), resources);
  const MatrixView& centres = narrowed.view();
  KMeansParams given = params();
  given.init = KMeansInit::given;
  KMeansInput input;
  input.centres = centres;
  check_kmeans_input(given, RowsInfo(centres), input);
  KMeansModel model = empty_model(given.clusters, 0, centres.cols(), resources);
  model.offset = narrowed.offset();
  std::fill_n(model.counts.data(), given.clusters, 0.0);
  auto* const out = static_cast<float*>(model.centres.mutable_view().data());
  for (int64_t c = 0; c < given.clusters; ++c) widen_row(centres, c, out + c * centres.cols());
  if (given.spherical) normalise_centres(model.centres.mutable_view());
  state_->model.publish(std::move(model));
}

KMeansSnapshot KMeans::snapshot() const {
  const std::shared_ptr<const KMeansModel> model = state_->fitted();
  KMeansSnapshot taken;
  taken.centres = model->centres.view();
  taken.counts = counts_of(*model);
  taken.labels = labels_of(*model);
  taken.objective = model->objective;
  taken.history = model->history;
  taken.iterations = model->iterations;
  if (model->offset != nullptr) taken.offset = *model->offset;
  taken.owner = model;
  return taken;
}

void KMeans::restore(const KMeansSnapshot& snapshot, const Resources& resources) {
  const int64_t clusters = params().clusters;
  check_snapshot(snapshot, clusters);
  const MatrixView& centres = snapshot.centres;
  KMeansModel model = empty_model(clusters, snapshot.labels.size, centres.cols(), resources);
  auto* const out = static_cast<float*>(model.centres.mutable_view().data());
  for (int64_t c = 0; c < clusters; ++c) widen_row(centres, c, out + c * centres.cols());
  std::copy_n(snapshot.counts.data, clusters, model.counts.data());
  std::copy_n(snapshot.labels.data, snapshot.labels.size, model.labels.data());
  model.objective = snapshot.objective;
  model.history = snapshot.history;
  model.iterations = snapshot.iterations;
  if (!snapshot.offset.empty()) model.offset = std::make_shared<const std::vector<double>>(snapshot.offset);
  state_->model.publish(std::move(model));
}

const KMeansParams& KMeans::params() const { return state_->params; }
bool KMeans::fitted() const { return state_->model.get()->centres.rows() > 0; }
int64_t KMeans::dimension() const { return state_->model.get()->centres.cols(); }
std::vector<double> KMeans::offset() const {
  const std::shared_ptr<const KMeansModel> model = state_->model.get();
  return model->offset == nullptr ? std::vector<double>() : *model->offset;
}
double KMeans::objective() const { return state_->model.get()->objective; }
std::vector<double> KMeans::history() const { return state_->model.get()->history; }
int64_t KMeans::iterations() const { return state_->model.get()->iterations; }

}  // namespace kith
