// The k-NN graph of an array or of files, in the caller's arrays or fresh ones; and what the library makes of a graph.
#include <kith/distributed.hpp>
#include <kith/graph_file.hpp>
#include <kith/graph_folder.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/graph_recall.hpp>
#include <kith/knn_graph.hpp>
#include <kith/one_call.hpp>

#include "array.hpp"
#include "call.hpp"
#include "communicator.hpp"
#include "gil.hpp"
#include "graph_arrays.hpp"
#include "graph_params.hpp"
#include "module.hpp"
#include "neighbors_output.hpp"
#include "vector_source.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace kith::python {
namespace {

#define KITH_PY_CSR                                                                \
  "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], "   \
  "numpy.typing.NDArray[numpy.float32]]"
#define KITH_PY_PAIR "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float32]]"

KnnGraphParams params_of(int64_t k, const std::string& metric, const std::string& method, bool check_finite,
                         const nb::dict& asked) {
  KnnGraphParams params;
  params.k = k;
  params.metric = parse_metric(metric);
  params.method = parse_graph_method(method);
  params.check_finite = check_finite;
  put_given(asked, params);
  params.validate();
  return params;
}

constexpr int64_t kNeighborBytes = sizeof(int64_t) + sizeof(float);

// Builds the graph of an array or of a file.
template <typename Rows>
nb::tuple graph_of(const Rows& rows, const KnnGraphParams& params, const CallOptions& options, const GivenOutput& out) {
  Call call(options);
  check_knn(rows, rows, {.k = params.k, .metric = params.metric});
  GraphReport report;
  const auto found = as_one_call("the graph", call.resources(), [&](const Resources& resources) {
    NeighborsOutput output(rows.rows(), params.k, out, resources);
    call.run([&] { report = knn_graph(rows, output.view(), params, resources); });
    return output.take();
  });
  if (!out) report.peak_host_bytes += rows.rows() * params.k * kNeighborBytes;
  return nb::make_tuple(found, report_dict(report));
}

nb::tuple graph(const VectorArray& x, int64_t k, const std::string& metric, const std::string& method,
                bool check_finite, const nb::dict& asked, const CallOptions& options, const GivenOutput& out,
                const nb::object& comm) {
  const KnnGraphParams params = params_of(k, metric, method, check_finite, asked);
  const MatrixView rows = view_of(x, "x");
  if (comm.is_none()) return graph_of(rows, params, options, out);
  check_result_size(rows.rows(), k);
  Call call(options);
  GraphReport report;
  NeighborsOutput output(rows.rows(), k, out, call.resources());
  run_on_ranks(call, comm, [&](Communicator* ranks) {
    report = knn_graph(*ranks, rows, output.view(), params, call.resources());
  });
  return nb::make_tuple(output.take(), report_dict(report));
}

nb::tuple graph_file(const nb::object& source, int64_t k, const std::string& metric, const std::string& method,
                     bool check_finite, const nb::dict& asked, const CallOptions& options, const nb::object& comm) {
  const KnnGraphParams params = params_of(k, metric, method, check_finite, asked);
  if (comm.is_none()) return graph_of(vector_file_of(source), params, options, std::nullopt);
  Call call(options);
  KnnGraph found;
  run_on_ranks(call, comm, [&](Communicator* ranks) {
    std::optional<VectorFile> rows;
    {
      const WithGil gil;  // here, so that an error of one rank reaches the others
      rows.emplace(vector_file_of(source));
    }
    found = knn_graph(*ranks, *rows, params, call.resources());
  });
  NeighborsOutput output(found.rows(), k, std::nullopt, call.resources());
  std::copy_n(found.ids(), found.rows() * k, output.view().ids);
  std::copy_n(found.distances(), found.rows() * k, output.view().distances);
  return nb::make_tuple(output.take(), report_dict(found.report()));
}

nb::dict graph_to_folder(const nb::object& source, const nb::bytes& folder, const nb::bytes& work, bool keep_work,
                         std::pair<bool, bool> form, const std::string& part, bool wait, int64_t k,
                         const std::string& metric, const std::string& method, bool check_finite, const nb::dict& asked,
                         const CallOptions& options, const nb::object& comm) {
  const KnnGraphParams params = params_of(k, metric, method, check_finite, asked);
  const std::string path(folder.c_str(), folder.size());
  Call call(options);
  GraphReport report;
  GraphWork kept{{work.c_str(), work.size()}, keep_work, {form.first, form.second}};
  if (!part.empty()) kept.part = parse_work_part(part);
  kept.part.wait = wait;
  std::optional<VectorFile> rows;
  if (comm.is_none()) rows.emplace(vector_file_of(source));
  run_on_ranks(call, comm, [&](Communicator* ranks) {
    if (ranks == nullptr) {
      report = knn_graph_folder(*rows, path, params, kept, call.resources());
      return;
    }
    {
      const WithGil gil;  // here, so that an error of one rank reaches the others
      rows.emplace(vector_file_of(source));
    }
    report = knn_graph_folder(*ranks, *rows, path, params, kept, call.resources());
  });
  return report_dict(report);
}

void make_given(GivenGraph* self, const std::variant<DeviceArray, ConstIdArray>& ids,
                const std::variant<DeviceArray, ConstDistanceArray>& distances, const std::string& metric) {
  (void)parse_metric(metric);
  new (self) GivenGraph{ids, distances, metric};
}

std::string path_of(const nb::bytes& path) { return {path.c_str(), path.size()}; }

template <typename Work>
auto called(const CallOptions& options, const Work& work) {
  Call call(options);
  std::optional<decltype(work(call.resources()))> result;
  call.run([&] { result.emplace(work(call.resources())); });
  return std::move(*result);
}

template <CsrMatrix (KnnGraph::*member)(const Resources&) const>
nb::tuple matrix_of(const GivenGraph& self, const CallOptions& options) {
  const KnnGraph graph = self.graph();
  return csr_arrays(called(options, [&](const Resources& resources) { return (graph.*member)(resources); }));
}

void validate(const GivenGraph& self, const CallOptions& options) {
  const KnnGraph graph = self.graph();
  Call call(options);
  call.run([&] { graph.validate(call.resources()); });
}

nb::object in_degrees(const GivenGraph& self, const CallOptions& options) {
  const KnnGraph graph = self.graph();
  return buffer_array<int64_t>(called(options, [&](const Resources& resources) { return graph.in_degrees(resources); }),
                               graph.rows());
}

nb::tuple components(const GivenGraph& self, const CallOptions& options) {
  const KnnGraph graph = self.graph();
  RowLabels found = called(options, [&](const Resources& resources) { return graph.components(resources); });
  return nb::make_tuple(found.sets, buffer_array<int64_t>(std::move(found.labels), graph.rows()));
}

nb::tuple to_umap(const GivenGraph& self, const CallOptions& options) {
  const KnnGraph graph = self.graph();
  auto* kept = new Neighbors(called(options, [&](const Resources& resources) { return graph.to_umap(resources); }));
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<Neighbors*>(pointer); });
  const NeighborsView view = kept->view();
  const size_t shape[] = {static_cast<size_t>(view.queries), static_cast<size_t>(view.k)};
  return nb::make_tuple(
      nb::ndarray<nb::numpy, nb::ndim<2>>(view.ids, 2, shape, owner, nullptr, nb::dtype<int64_t>()).cast(),
      nb::ndarray<nb::numpy, nb::ndim<2>>(view.distances, 2, shape, owner, nullptr, nb::dtype<float>()).cast());
}

nb::tuple measured_recall(const GivenGraph& self, const VectorArray& x, int64_t rows, uint64_t seed,
                          const CallOptions& options) {
  const KnnGraph graph = self.graph();
  const MatrixView view = view_of(x, "x");
  const GraphRecall found = called(options, [&](const Resources& resources) {
    return measure_recall(graph, view, {.rows = rows, .seed = seed}, resources);
  });
  return nb::make_tuple(found.recall, found.standard_error, found.recall_at_10, found.rows);
}

// Read-only arrays, which keep what was read or mapped.
nb::tuple arrays_of(KnnGraph graph) {
  auto* kept = new KnnGraph(std::move(graph));
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<KnnGraph*>(pointer); });
  const size_t shape[] = {static_cast<size_t>(kept->rows()), static_cast<size_t>(kept->k())};
  using ReadOnly = nb::ndarray<nb::numpy, nb::ro, nb::ndim<2>>;
  return nb::make_tuple(ReadOnly(kept->ids(), 2, shape, owner, nullptr, nb::dtype<int64_t>()).cast(),
                        ReadOnly(kept->distances(), 2, shape, owner, nullptr, nb::dtype<float>()).cast());
}

nb::tuple load(const nb::bytes& ids, const nb::bytes& distances, const std::string& metric,
               const CallOptions& options) {
  const Metric wanted = parse_metric(metric);
  return arrays_of(called(options, [&](const Resources& resources) {
    return load_graph(path_of(ids), path_of(distances), wanted, resources);
  }));
}

nb::tuple load_folder(const nb::bytes& folder, const CallOptions& options) {
  KnnGraph graph =
      called(options, [&](const Resources& resources) { return load_graph_folder(path_of(folder), resources); });
  const std::string metric(name_of(graph.metric()));
  return nb::make_tuple(arrays_of(std::move(graph)), metric);
}

void save(const GivenGraph& self, const nb::bytes& ids, const nb::bytes& distances, const CallOptions& options) {
  const KnnGraph graph = self.graph();
  Call call(options);
  call.run([&] { save_graph(graph, path_of(ids), path_of(distances), call.resources()); });
}

}  // namespace

void bind_knn_graph(nb::module_& module) {
  module.def("knn_graph", &graph, nb::arg("x").noconvert(), nb::arg("k"), nb::arg("metric"), nb::arg("method"),
             nb::arg("check_finite"), nb::arg("params"), nb::arg("options"), nb::arg("out").noconvert().none(),
             nb::arg("comm") = nb::none(),
             nb::sig("def knn_graph(x: " KITH_PY_VECTORS ", k: int, metric: str, method: str, check_finite: bool, "
                     "params: dict[str, typing.Any], options: CallOptions, out: " KITH_PY_GIVEN
                     ", comm: object | None = None) -> tuple[" KITH_PY_NEIGHBORS ", dict[str, typing.Any]]"),
             "Returns (ids, distances), or None after filling out, and the report.");
  module.def(
      "knn_graph_file", &graph_file, nb::arg("x"), nb::arg("k"), nb::arg("metric"), nb::arg("method"),
      nb::arg("check_finite"), nb::arg("params"), nb::arg("options"), nb::arg("comm") = nb::none(),
      nb::sig("def knn_graph_file(x: object, k: int, metric: str, method: str, check_finite: bool, "
              "params: dict[str, typing.Any], options: CallOptions, comm: object | None = None) -> tuple[" KITH_PY_PAIR
              ", dict[str, typing.Any]]"),
      "Returns (ids, distances) and the report.");
  module.def(
      "knn_graph_folder", &graph_to_folder, nb::arg("x"), nb::arg("folder"), nb::arg("work"), nb::arg("keep_work"),
      nb::arg("form"), nb::arg("part"), nb::arg("wait"), nb::arg("k"), nb::arg("metric"), nb::arg("method"),
      nb::arg("check_finite"), nb::arg("params"), nb::arg("options"), nb::arg("comm") = nb::none(),
      nb::sig("def knn_graph_folder(x: object, folder: bytes, work: bytes, keep_work: bool, form: tuple[bool, bool], "
              "part: str, wait: bool, k: int, metric: str, method: str, check_finite: bool, "
              "params: dict[str, typing.Any], options: CallOptions, comm: object | None = None) -> "
              "dict[str, typing.Any]"),
      "Writes the graph to a folder, and returns the report. form: without distances; ids as int32.");
  module.def("load_graph", &load, nb::arg("ids"), nb::arg("distances"), nb::arg("metric"), nb::arg("options"),
             nb::sig("def load_graph(ids: bytes, distances: bytes, metric: str, options: CallOptions) -> " KITH_PY_PAIR),
             "Read-only arrays of a graph that is one, mapped where the files lie so.");
  module.def("load_graph_folder", &load_folder, nb::arg("folder"), nb::arg("options"),
             nb::sig("def load_graph_folder(folder: bytes, options: CallOptions) -> tuple[" KITH_PY_PAIR ", str]"),
             "The arrays of a graph's folder, mapped, and its metric.");

  nb::class_<GivenGraph>(module, "GivenGraph", "Arrays of a graph that the caller keeps for a call.")
      .def("__init__", &make_given, nb::arg("ids").noconvert(), nb::arg("distances").noconvert(), nb::arg("metric"),
           nb::sig("def __init__(self, ids: DeviceArray | numpy.typing.NDArray[numpy.int64], distances: DeviceArray | "
                   KITH_PY_DISTANCES ", metric: str) -> None"))
      .def("validate", &validate, nb::arg("options"), "ValueError that names the row, unless it is a graph.")
      .def("in_degrees", &in_degrees, nb::arg("options"),
           nb::sig("def in_degrees(self, options: CallOptions) -> numpy.typing.NDArray[numpy.int64]"))
      .def("components", &components, nb::arg("options"),
           nb::sig("def components(self, options: CallOptions) -> tuple[int, numpy.typing.NDArray[numpy.int64]]"))
      .def("to_csr", &matrix_of<&KnnGraph::to_csr>, nb::arg("options"),
           nb::sig("def to_csr(self, options: CallOptions) -> " KITH_PY_CSR), "(offsets, columns, values)")
      .def("reversed", &matrix_of<&KnnGraph::reversed>, nb::arg("options"),
           nb::sig("def reversed(self, options: CallOptions) -> " KITH_PY_CSR))
      .def("symmetric", &matrix_of<&KnnGraph::symmetric>, nb::arg("options"),
           nb::sig("def symmetric(self, options: CallOptions) -> " KITH_PY_CSR))
      .def("mutual", &matrix_of<&KnnGraph::mutual>, nb::arg("options"),
           nb::sig("def mutual(self, options: CallOptions) -> " KITH_PY_CSR))
      .def("connectivities", &matrix_of<&KnnGraph::connectivities>, nb::arg("options"),
           nb::sig("def connectivities(self, options: CallOptions) -> " KITH_PY_CSR))
      .def("to_umap", &to_umap, nb::arg("options"),
           nb::sig("def to_umap(self, options: CallOptions) -> " KITH_PY_PAIR))
      .def("measure_recall", &measured_recall, nb::arg("x").noconvert(), nb::arg("rows"), nb::arg("seed"),
           nb::arg("options"),
           nb::sig("def measure_recall(self, x: " KITH_PY_VECTORS ", rows: int, seed: int, options: CallOptions) -> "
                   "tuple[float, float, float, int]"))
      .def("save", &save, nb::arg("ids"), nb::arg("distances"), nb::arg("options"));
}

}  // namespace kith::python
