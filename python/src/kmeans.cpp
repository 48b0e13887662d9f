// The library's KMeans, as the package's class of that name uses it.
#include <kith/kmeans.hpp>

#include "array.hpp"
#include "call.hpp"
#include "communicator.hpp"
#include "matrix_output.hpp"
#include "module.hpp"
#include "tensor_place.hpp"
#include "vector_source.hpp"

#include <kith/distributed.hpp>
#include <kith/narrowed_vectors.hpp>
#include <kith/one_call.hpp>
#include <kith/vector_file.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kith::python {
namespace {

using WeightArray = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Weights = std::optional<WeightArray>;
using Centres = std::optional<VectorArray>;

#define KITH_PY_WEIGHTS "numpy.typing.NDArray[numpy.float32] | None"

KMeansInput input_of(const Weights& weights, const Centres& centres) {
  KMeansInput input;
  if (weights) input.weights = {weights->data(), static_cast<int64_t>(weights->shape(0)), {}};
  if (centres) input.centres = view_of(*centres, "init");
  return input;
}

template <typename T>
int64_t bytes_of(int64_t count) {
  return count * static_cast<int64_t>(sizeof(T));
}

// Kith's memory, counted against the call's limit, as an array of one axis.
template <typename T>
nb::object owning_vector(HostBuffer buffer, int64_t size) {
  auto* kept = new HostBuffer(std::move(buffer));
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<HostBuffer*>(pointer); });
  const size_t shape[] = {static_cast<size_t>(size)};
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->template as<T>(), 1, shape, owner).cast();
}

template <typename T>
nb::object copied_vector(const VectorView<const T>& from) {
  HostBuffer buffer(from.size * static_cast<int64_t>(sizeof(T)), "a copy for Python", Resources());
  std::copy_n(from.data, from.size, buffer.as<T>());
  return owning_vector<T>(std::move(buffer), from.size);
}

KMeans make_kmeans(int64_t clusters, int64_t iterations, double tol, int64_t n_init, const std::string& init,
                   uint64_t seed, int64_t max_points_per_centre, int64_t init_points_per_centre, bool spherical,
                   int64_t batch_size, bool compute_labels, bool history, bool check_finite) {
  KMeansParams params;
  params.clusters = clusters;
  params.iterations = iterations;
  params.tol = tol;
  params.n_init = n_init;
  params.init = parse_kmeans_init(init);
  params.seed = seed;
  params.max_points_per_centre = max_points_per_centre;
  params.init_points_per_centre = init_points_per_centre;
  params.spherical = spherical;
  params.batch_size = batch_size;
  params.compute_labels = compute_labels;
  params.history = history;
  params.check_finite = check_finite;
  return KMeans(params);
}

void fit(KMeans& self, const VectorArray& x, const Weights& weights, const Centres& centres, const CallOptions& options,
         const nb::object& comm) {
  const MatrixView rows = view_of(x, "x");
  const KMeansInput input = input_of(weights, centres);
  Call call(options);
  run_on_ranks(call, comm, [&](Communicator* ranks) {
    ranks == nullptr ? self.fit(rows, input, call.resources()) : kith::fit(self, *ranks, rows, input, call.resources());
  });
}

void fit_file(KMeans& self, const nb::object& source, const Weights& weights, const Centres& centres,
              const CallOptions& options, const nb::object& comm) {
  std::optional<VectorFile> file;
  const KMeansInput input = input_of(weights, centres);
  Call call(options);
  run_on_ranks(call, comm, [&](Communicator* ranks) {
    {
      const WithGil gil;
      file.emplace(vector_file_of(source));
    }
    ranks == nullptr ? self.fit(*file, input, call.resources())
                     : kith::fit(self, *ranks, *file, input, call.resources());
  });
}

void partial_fit(KMeans& self, const VectorArray& x, const Weights& weights, const Centres& centres,
                 const CallOptions& options) {
  const MatrixView rows = view_of(x, "x");
  const KMeansInput input = input_of(weights, centres);
  Call call(options);
  call.run([&] { self.partial_fit(rows, input, call.resources()); });
}

// Labels and, where wanted, distances: fresh ones on the host, or into arrays in a GPU's memory.
using FreshPrediction = std::optional<std::pair<nb::object, std::optional<nb::object>>>;
using GivenPrediction = std::optional<std::pair<DeviceArray, std::optional<DeviceArray>>>;

FreshPrediction predict(const KMeans& self, const VectorArray& x, bool wants_distances, const CallOptions& options,
                        const GivenPrediction& out) {
  const MatrixView rows = view_of(x, "x");
  const int64_t count = rows.rows();
  Call call(options);
  if (out) {
    const VectorView<int32_t> labels{out->first.writable<int32_t>("labels", 1, count), count, out->first.space()};
    VectorView<float> distances;
    if (out->second) {
      distances = {out->second->writable<float>("distances", 1, count), count, out->second->space()};
    }
    call.run([&] { self.predict(rows, labels, distances, call.resources()); });
    return std::nullopt;
  }
  const int64_t far_count = wants_distances ? count : 0;
  return as_one_call("the labels", call.resources(), [&](const Resources& resources) -> FreshPrediction {
    HostBuffer labels(bytes_of<int32_t>(count), "the labels", resources);
    HostBuffer distances(bytes_of<float>(far_count), "the distances", resources);
    call.run([&] {
      self.predict(rows, labels.as<int32_t>(), wants_distances ? distances.as<float>() : nullptr, resources);
    });
    std::optional<nb::object> far;
    if (wants_distances) far = owning_vector<float>(std::move(distances), count);
    return std::pair{owning_vector<int32_t>(std::move(labels), count), std::move(far)};
  });
}

// The labels of a tensor in a GPU's memory, into a fresh one there.
void predict_tensor(const KMeans& self, const TensorPlace& x, int device, int threads, uintptr_t stream,
                    uintptr_t labels) {
  const MatrixView rows = view_of(x, device);
  const VectorView<int32_t> found{reinterpret_cast<int32_t*>(labels), rows.rows(), rows.space()};
  Call call({std::vector<DeviceParts>{{Device::cuda(device)}}, threads, {}, {}, nb::none(), stream});
  call.run([&] { self.predict(rows, found, VectorView<float>(), call.resources()); });
}

std::pair<nb::object, nb::object> predict_file(const KMeans& self, const nb::object& source, const CallOptions& options) {
  const VectorFile file = vector_file_of(source);
  Call call(options);
  const int64_t rows = file.rows();
  using Found = std::pair<nb::object, nb::object>;
  return as_one_call("the labels", call.resources(), [&](const Resources& resources) -> Found {
    HostBuffer labels(bytes_of<int32_t>(rows), "the labels", resources);
    HostBuffer distances(bytes_of<float>(rows), "the distances", resources);
    const auto keep = [&](int64_t first, int64_t count, const int32_t* l, const float* d) {
      std::copy_n(l, count, labels.as<int32_t>() + first);
      std::copy_n(d, count, distances.as<float>() + first);
    };
    call.run([&] { self.predict(file, keep, resources); });
    return {owning_vector<int32_t>(std::move(labels), rows), owning_vector<float>(std::move(distances), rows)};
  });
}

std::optional<nb::object> transform(const KMeans& self, const VectorArray& x, const CallOptions& options,
                                    const std::optional<GivenFloats>& out) {
  const MatrixView rows = view_of(x, "x");
  Call call(options);
  return as_one_call("the distances", call.resources(), [&](const Resources& resources) {
    auto output = MatrixOutput::floats(rows.rows(), self.params().clusters, "the distances", out, resources);
    call.run([&] { self.transform(rows, output.view(), resources); });
    return output.take();
  });
}

// Where the vectors were: as float64 if something was subtracted.
nb::object restored_matrix(const MatrixView& from, const std::vector<double>& offset) {
  MatrixBuffer made(DType::f64, from.rows(), from.cols(), "a copy for Python", Resources());
  auto* to = static_cast<double*>(made.mutable_view().data());
  for (int64_t row = 0; row < from.rows(); ++row) {
    const auto* const values = static_cast<const float*>(from.data()) + row * from.row_stride();
    for (size_t c = 0; c < offset.size(); ++c) *to++ = static_cast<double>(values[c]) + offset[c];
  }
  return vectors_array(std::move(made));
}

nb::object copied_matrix(const MatrixView& from) {
  MatrixBuffer copy(DType::f32, from.rows(), from.cols(), "a copy for Python", Resources());
  std::copy_n(static_cast<const float*>(from.data()), from.rows() * from.cols(),
              static_cast<float*>(copy.mutable_view().data()));
  return vectors_array(std::move(copy));
}

// The labels of one fit, which it keeps alive: many, and copied, by numpy, for those who ask.
class FittedLabels {
 public:
  explicit FittedLabels(const KMeansSnapshot& fit) : labels_(fit.labels), owner_(fit.owner) {}
  nb::object view() const {
    auto* const kept = new std::shared_ptr<const void>(owner_);
    nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::shared_ptr<const void>*>(pointer); });
    const size_t shape[] = {static_cast<size_t>(labels_.size)};
    return nb::ndarray<nb::numpy, const int32_t, nb::ndim<1>>(labels_.data, 1, shape, owner).cast();
  }

 private:
  VectorView<const int32_t> labels_;
  std::shared_ptr<const void> owner_;
};

// All of one fit, also where another thread fits meanwhile: the snapshot keeps it alive.
using OffsetList = std::optional<std::vector<double>>;
OffsetList offset_list(const std::vector<double>& offset) { return offset.empty() ? OffsetList() : OffsetList(offset); }

template <typename Labels, typename... More>
using Results = std::tuple<nb::object, nb::object, Labels, double, std::vector<double>, int64_t, More...>;
Results<nb::object, OffsetList> snapshot(const KMeans& self) {
  const KMeansSnapshot fit = self.snapshot();
  return {copied_matrix(fit.centres),
          copied_vector(fit.counts),
          copied_vector(fit.labels),
          fit.objective,
          fit.history,
          fit.iterations,
          offset_list(fit.offset)};
}
Results<FittedLabels> results(const KMeans& self) {
  const KMeansSnapshot fit = self.snapshot();
  return {fit.offset.empty() ? copied_matrix(fit.centres) : restored_matrix(fit.centres, fit.offset),
          copied_vector(fit.counts),
          FittedLabels(fit),
          fit.objective,
          fit.history,
          fit.iterations};
}

// Vectors as the library reads them, and what they have lost: `offset`, or what the metric makes of them.
std::pair<nb::object, OffsetList> narrowed(const nb::object& x, const std::string& name,
                                           const std::optional<std::string>& metric, const OffsetList& offset) {
  const auto given_rows = nb::cast<HostVectorArray>(x, false);
  const MatrixView view = view_of(given_rows, name.c_str());
  Call call;
  NarrowedVectors made;
  call.run([&] {
    made = metric ? narrow_vectors(name, view, parse_metric(*metric), call.resources())
                  : narrow_vectors(name, view, offset.value_or(std::vector<double>()), call.resources());
  });
  if (!made.is_copy) return {x, std::nullopt};
  return {vectors_array(std::move(made.rows)), offset_list(made.offset)};
}

using CountArray = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using LabelArray = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void restore(KMeans& self, const HostVectorArray& centres, const CountArray& counts, const LabelArray& labels,
             double objective, std::vector<double> history, int64_t iterations, OffsetList offset) {
  KMeansSnapshot snapshot;
  snapshot.centres = view_of(centres, "the centres");
  snapshot.counts = {counts.data(), static_cast<int64_t>(counts.shape(0)), {}};
  snapshot.labels = {labels.data(), static_cast<int64_t>(labels.shape(0)), {}};
  snapshot.objective = objective;
  snapshot.history = std::move(history);
  snapshot.iterations = iterations;
  if (offset) snapshot.offset = std::move(*offset);
  self.restore(snapshot);
}

}  // namespace

void bind_kmeans(nb::module_& module) {
  nb::class_<FittedLabels>(module, "FittedLabels")
      .def("view", &FittedLabels::view, nb::sig("def view(self) -> numpy.typing.NDArray[numpy.int32]"),
           "The fit's own, which cannot be written to.");
  nb::class_<KMeans>(module, "KMeans")
      .def(nb::new_(&make_kmeans), nb::arg("clusters"), nb::arg("iterations"), nb::arg("tol"), nb::arg("n_init"),
           nb::arg("init"), nb::arg("seed"), nb::arg("max_points_per_centre"), nb::arg("init_points_per_centre"),
           nb::arg("spherical"), nb::arg("batch_size"), nb::arg("compute_labels"), nb::arg("history"),
           nb::arg("check_finite"))
      .def("fit", &fit, nb::arg("x").noconvert(), nb::arg("weights").noconvert().none(),
           nb::arg("centres").noconvert().none(), nb::arg("options"), nb::arg("comm") = nb::none(),
           nb::sig("def fit(self, x: " KITH_PY_VECTORS ", weights: " KITH_PY_WEIGHTS ", centres: " KITH_PY_VECTORS
                   " | None, options: CallOptions, comm: object | None = None) -> None"))
      .def("fit_file", &fit_file, nb::arg("path"), nb::arg("weights").noconvert().none(),
           nb::arg("centres").noconvert().none(), nb::arg("options"), nb::arg("comm") = nb::none(),
           nb::sig("def fit_file(self, path: object, weights: " KITH_PY_WEIGHTS ", centres: " KITH_PY_VECTORS
                   " | None, options: CallOptions, comm: object | None = None) -> None"))
      .def("partial_fit", &partial_fit, nb::arg("x").noconvert(), nb::arg("weights").noconvert().none(),
           nb::arg("centres").noconvert().none(), nb::arg("options"),
           nb::sig("def partial_fit(self, x: " KITH_PY_VECTORS ", weights: " KITH_PY_WEIGHTS
                   ", centres: " KITH_PY_VECTORS " | None, options: CallOptions) -> None"))
      .def("predict", &predict, nb::arg("x").noconvert(), nb::arg("wants_distances"), nb::arg("options"),
           nb::arg("out").noconvert().none(),
           nb::sig("def predict(self, x: " KITH_PY_VECTORS ", wants_distances: bool, options: CallOptions, "
                   "out: tuple[DeviceArray, DeviceArray | None] | None) -> "
                   "tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.float32] | None] | None"),
           "Returns (labels, distances), or None after filling out.")
      .def("predict_tensor", &predict_tensor, nb::arg("x"), nb::arg("device"), nb::arg("threads"), nb::arg("stream"),
           nb::arg("labels"),
           "The labels alone, quickly, of a matrix in a GPU's memory: (address, rows, columns, dtype), rows one after "
           "the "
           "other, and the address of as many int32.")
      .def("predict_file", &predict_file, nb::arg("path"), nb::arg("options"),
           nb::sig("def predict_file(self, path: object, options: CallOptions) -> "
                   "tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.float32]]"))
      .def("transform", &transform, nb::arg("x").noconvert(), nb::arg("options"), nb::arg("out").noconvert().none(),
           nb::sig("def transform(self, x: " KITH_PY_VECTORS ", options: CallOptions, out: " KITH_PY_GIVEN_DISTANCES
                   ") -> " KITH_PY_DISTANCES " | None"),
           "Returns the matrix, or None after filling out.")
      .def("restore", &restore, nb::arg("centres").noconvert(), nb::arg("counts").noconvert(),
           nb::arg("labels").noconvert(), nb::arg("objective"), nb::arg("history"), nb::arg("iterations"),
           nb::arg("offset") = nb::none(),
           nb::sig("def restore(self, centres: numpy.typing.NDArray[numpy.float32], "
                   "counts: numpy.typing.NDArray[numpy.float64], labels: numpy.typing.NDArray[numpy.int32], "
                   "objective: float, history: collections.abc.Sequence[float], iterations: int, "
                   "offset: collections.abc.Sequence[float] | None = None) -> None"),
           "Takes what snapshot returned.")
      .def("snapshot", &snapshot,
           nb::sig("def snapshot(self) -> tuple[numpy.typing.NDArray[numpy.float32], "
                   "numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.int32], float, list[float], int, "
                   "list[float] | None]"),
           "Copies of centres, counts and labels, the objective, its history, the iterations, and what was subtracted: "
           "all "
           "of one fit.")
      .def("results", &results,
           nb::sig("def results(self) -> tuple[numpy.typing.NDArray[typing.Any], "
                   "numpy.typing.NDArray[numpy.float64], FittedLabels, float, list[float], int]"),
           "The same, but the labels are copied when they are asked for, and centres lie where the vectors were: "
           "float64 "
           "if something was subtracted.")
      .def_prop_ro("offset", [](const KMeans& self) { return offset_list(self.offset()); })
      .def_prop_ro("fitted", &KMeans::fitted);
  module.def(
      "narrowed", &narrowed, nb::arg("x").noconvert(), nb::arg("name"), nb::arg("metric").none(),
      nb::arg("offset").none(),
      nb::sig("def narrowed(x: " KITH_PY_HOST_VECTORS ", name: str, metric: str | None, "
              "offset: collections.abc.Sequence[float] | None) -> tuple[" KITH_PY_HOST_VECTORS ", list[float] | None]"),
      "Vectors as the library reads them, and what they have lost: the offset, or what is best for the metric.");
}

}  // namespace kith::python
