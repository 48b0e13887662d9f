// SmoothPaths, and spanning trees with what follows from them.
#include <kith/near_duplicates.hpp>
#include <kith/smooth_paths.hpp>
#include <kith/spanning_tree.hpp>

#include "array.hpp"
#include "call.hpp"
#include "graph_arrays.hpp"
#include "module.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <utility>

namespace kith::python {
namespace {

using IdPairs = nb::ndarray<const int64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

void make_paths(SmoothPaths* self, const GivenGraph& given, const CallOptions& options) {
  const KnnGraph graph = given.graph();
  std::optional<SmoothPaths> paths;
  Call call(options);
  call.run([&] { paths.emplace(graph, call.resources()); });
  new (self) SmoothPaths(std::move(*paths));
}

nb::object widths(const SmoothPaths& self, const IdPairs& pairs, const CallOptions& options) {
  const auto count = static_cast<int64_t>(pairs.shape(0));
  Call call(options);
  HostBuffer found(count * static_cast<int64_t>(sizeof(float)), "widths", call.resources());
  call.run([&] { self.widths(pairs.data(), count, found.as<float>(), call.resources()); });
  return buffer_array<float>(std::move(found), count);
}

nb::tuple path(const SmoothPaths& self, int64_t a, int64_t b, const std::string& by, const CallOptions& options) {
  const PathBy way = parse_path_by(by);
  SmoothPath found;
  Call call(options);
  call.run([&] { found = self.path(a, b, way, call.resources()); });
  return nb::make_tuple(buffer_array<int64_t>(std::move(found.rows), found.size), found.width);
}

void make_tree(SpanningTree* self, const GivenGraph& given, const std::optional<VectorArray>& x,
               const std::string& weights, int64_t min_samples, const std::string& unconnected,
               const CallOptions& options) {
  SpanningTreeParams params;
  params.weights = parse_edge_weights(weights);
  params.min_samples = min_samples;
  params.unconnected = parse_unconnected(unconnected);
  params.validate();
  const KnnGraph graph = given.graph();
  const MatrixView view = x ? view_of(*x, "x") : MatrixView();
  SpanningTree tree;
  Call call(options);
  call.run([&] {
    tree = x ? spanning_tree(graph, view, params, call.resources()) : spanning_tree(graph, params, call.resources());
  });
  new (self) SpanningTree(std::move(tree));
}

// The tree's own memory, read-only, which `self` keeps.
nb::object edges_of(const nb::object& self) {
  const auto& tree = nb::cast<const SpanningTree&>(self);
  const size_t shape[] = {static_cast<size_t>(tree.size()), 2};
  return nb::ndarray<nb::numpy, nb::ro, nb::ndim<2>>(tree.ends(), 2, shape, self, nullptr, nb::dtype<int64_t>()).cast();
}

nb::object weights_of(const nb::object& self) {
  const auto& tree = nb::cast<const SpanningTree&>(self);
  const size_t shape[] = {static_cast<size_t>(tree.size())};
  return nb::ndarray<nb::numpy, nb::ro, nb::ndim<1>>(tree.weights(), 1, shape, self, nullptr, nb::dtype<float>())
      .cast();
}

nb::object single_linkage(const SpanningTree& self) {
  HostBuffer linkage;
  Call call;
  call.run([&] { linkage = self.single_linkage(call.resources()); });
  return buffer_array<double>(std::move(linkage), self.size(), 4);
}

nb::object labels(const SpanningTree& self, double height) {
  RowLabels found;
  Call call;
  call.run([&] { found = self.labels(height, call.resources()); });
  return buffer_array<int64_t>(std::move(found.labels), self.rows());
}

nb::object near_rows(const VectorArray& x, float radius, const std::string& metric, bool exact, int64_t k, double recall,
                     uint64_t seed, bool check_finite, const CallOptions& options) {
  const NearDuplicateParams params{radius, parse_metric(metric), exact, k, recall, seed, check_finite};
  params.validate();
  const MatrixView view = view_of(x, "x");
  RowLabels found;
  Call call(options);
  call.run([&] { found = near_duplicates(view, params, call.resources()); });
  return buffer_array<int64_t>(std::move(found.labels), view.rows());
}

}  // namespace

void bind_smooth_paths(nb::module_& module) {
  nb::class_<SmoothPaths>(module, "SmoothPaths", "The library's.")
      .def("__init__", &make_paths, nb::arg("graph"), nb::arg("options"))
      .def_prop_ro("rows", &SmoothPaths::rows)
      .def_prop_ro("parts", &SmoothPaths::parts)
      .def("width", &SmoothPaths::width, nb::arg("a"), nb::arg("b"))
      .def("widths", &widths, nb::arg("pairs").noconvert(), nb::arg("options"),
           nb::sig("def widths(self, pairs: numpy.typing.NDArray[numpy.int64], options: CallOptions) -> "
                   "numpy.typing.NDArray[numpy.float32]"))
      .def("path", &path, nb::arg("a"), nb::arg("b"), nb::arg("by"), nb::arg("options"),
           nb::sig("def path(self, a: int, b: int, by: str, options: CallOptions) -> "
                   "tuple[numpy.typing.NDArray[numpy.int64], float]"));
  nb::class_<SpanningTree>(module, "SpanningTree", "The library's.")
      .def("__init__", &make_tree, nb::arg("graph"), nb::arg("x").noconvert().none(), nb::arg("weights"),
           nb::arg("min_samples"), nb::arg("unconnected"), nb::arg("options"),
           nb::sig("def __init__(self, graph: GivenGraph, x: " KITH_PY_VECTORS " | None, weights: str, "
                   "min_samples: int, unconnected: str, options: CallOptions) -> None"))
      .def_prop_ro("rows", &SpanningTree::rows)
      .def_prop_ro("edges", &edges_of, nb::sig("def edges(self) -> numpy.typing.NDArray[numpy.int64]"))
      .def_prop_ro("weights", &weights_of, nb::sig("def weights(self) -> numpy.typing.NDArray[numpy.float32]"))
      .def("single_linkage", &single_linkage,
           nb::sig("def single_linkage(self) -> numpy.typing.NDArray[numpy.float64]"))
      .def("labels", &labels, nb::arg("height"),
           nb::sig("def labels(self, height: float) -> numpy.typing.NDArray[numpy.int64]"));
  module.def("near_duplicates", &near_rows, nb::arg("x").noconvert(), nb::arg("radius"), nb::arg("metric"),
             nb::arg("exact"), nb::arg("k"), nb::arg("recall"), nb::arg("seed"), nb::arg("check_finite"),
             nb::arg("options"),
             nb::sig("def near_duplicates(x: " KITH_PY_VECTORS ", radius: float, metric: str, exact: bool, k: int, "
                     "recall: float, seed: int, check_finite: bool, options: CallOptions) -> "
                     "numpy.typing.NDArray[numpy.int64]"),
             "The group of each row.");
}

}  // namespace kith::python
