// The k-NN graph of an array: the neighbours of its rows, in the caller's arrays or fresh ones.
#include <kith/knn_graph.hpp>

#include "array.hpp"
#include "call.hpp"
#include "module.hpp"
#include "neighbors_output.hpp"

#include "exact/knn_checks.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>

namespace kith::python {
namespace {

std::optional<std::pair<nb::object, nb::object>> graph(const VectorArray& x, int64_t k, const std::string& metric,
                                                       const std::string& method, bool check_finite,
                                                       const CallOptions& options, const GivenOutput& out) {
  KnnGraphParams params;
  params.k = k;
  params.metric = parse_metric(metric);
  params.method = parse_graph_method(method);
  params.check_finite = check_finite;
  params.validate();
  const MatrixView view = view_of(x, "x");
  check_result_size(view.rows(), k);
  Call call(options);
  const SearchShape shape = check_search(RowsInfo(view), RowsInfo(view), params.metric);
  const SearchWish wish{.k = k, .without_self = true};
  return naming_the_limit(limited(shape, wish, RowFilter(), out), call.resources(), [&] {
    NeighborsOutput output(view.rows(), k, out, call.resources());
    call.run([&] { knn_graph(view, output.view(), params, call.resources()); });
    return output.take();
  });
}

// The package's arrays as a graph, for one call.
NeighborsView neighbors_of(const ConstIdArray& ids, const ConstDistanceArray& distances) {
  return {const_cast<int64_t*>(ids.data()), const_cast<float*>(distances.data()), static_cast<int64_t>(ids.shape(0)),
          static_cast<int64_t>(ids.shape(1)), MemorySpace::host()};
}

void check(const ConstIdArray& ids, const ConstDistanceArray& distances, const std::string& metric) {
  Call call;
  call.run([&] { KnnGraph(neighbors_of(ids, distances), nullptr, parse_metric(metric), call.resources()); });
}

}  // namespace

void bind_knn_graph(nb::module_& module) {
  module.def("knn_graph", &graph, nb::arg("x").noconvert(), nb::arg("k"), nb::arg("metric"), nb::arg("method"),
             nb::arg("check_finite"), nb::arg("options"), nb::arg("out").noconvert().none(),
             nb::sig("def knn_graph(x: " KITH_PY_VECTORS ", k: int, metric: str, method: str, check_finite: bool, "
                     "options: CallOptions, out: " KITH_PY_GIVEN ") -> " KITH_PY_NEIGHBORS),
             "Returns (ids, distances), or None after filling out.");
  module.def("check_graph", &check, nb::arg("ids").noconvert(), nb::arg("distances").noconvert(), nb::arg("metric"),
             nb::sig("def check_graph(ids: numpy.typing.NDArray[numpy.int64], distances: " KITH_PY_DISTANCES
                     ", metric: str) -> None"),
             "ValueError, naming the row, unless the neighbours are other rows, each once, nearest first.");
}

}  // namespace kith::python
