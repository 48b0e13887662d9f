// The package's arrays as a graph of the library, for one call, and what the library makes of graphs as numpy arrays.
#pragma once

#include "array.hpp"

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

// Fresh arrays of a graph on the host, and its report.
nb::tuple arrays_of(const KnnGraph& graph);

}  // namespace kith::python
