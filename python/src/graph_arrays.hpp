// The package's arrays as a graph of the library, for one call, and what the library makes of graphs as numpy arrays.
#pragma once

#include "array.hpp"
#include "call.hpp"
#include "neighbors_output.hpp"

#include <kith/csr_matrix.hpp>
#include <kith/graph_report.hpp>
#include <kith/knn_graph.hpp>

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <variant>

namespace kith::python {

// A graph in the package's hands: two arrays, both on the host or both in a GPU's memory, and the metric. What it is made
// of must outlive the call.
struct GivenGraph {
  std::variant<DeviceArray, ConstIdArray> ids;
  std::variant<DeviceArray, ConstDistanceArray> distances;
  std::string metric;

  // Not looked at: what reads it does that.
  KnnGraph graph() const;
};

// (offsets, columns, values)
nb::tuple csr_arrays(CsrMatrix matrix);

// A fresh numpy array that owns the buffer, of one axis or two (cols 0: one).
template <typename T>
nb::object buffer_array(HostBuffer buffer, int64_t rows, int64_t cols = 0) {
  auto* kept = new HostBuffer(std::move(buffer));
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<HostBuffer*>(pointer); });
  const size_t shape[] = {static_cast<size_t>(rows), static_cast<size_t>(cols)};
  return nb::ndarray<nb::numpy>(kept->data(), cols == 0 ? 1 : 2, shape, owner, nullptr, nb::dtype<T>()).cast();
}

nb::dict report_dict(const GraphReport& report);

// Fresh arrays (ids, distances) of a graph on the host, which they keep.
nb::tuple arrays_of(const KnnGraph& graph);

// A graph as a call makes it: fill(view, resources) fills the caller's arrays, rows x k, and returns the report; where there
// are none make(resources) returns a graph. (Fresh arrays on the host or None, report).
template <typename Make, typename Fill>
nb::tuple made_graph(const GivenOutput& out, int64_t rows, int64_t k, const CallOptions& options, const Make& make,
                     const Fill& fill) {
  Call call(options);
  if (out) {
    const NeighborsOutput output(rows, k, out, call.resources());
    GraphReport report;
    call.run([&] { report = fill(output.view(), call.resources()); });
    return nb::make_tuple(nb::none(), report_dict(report));
  }
  KnnGraph graph;
  call.run([&] { graph = make(call.resources()).to(MemorySpace::host(), call.resources()); });
  return nb::make_tuple(arrays_of(graph), report_dict(graph.report()));
}

#define KITH_PY_MADE_GRAPH "tuple[" KITH_PY_NEIGHBORS ", dict[str, typing.Any]]"

}  // namespace kith::python
