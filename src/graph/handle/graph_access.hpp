// A KnnGraph from inside the library: made of neighbours that a method found, which need not be looked at, with what it
// has to say of them.
#pragma once

#include <kith/knn_graph.hpp>

#include <memory>

namespace kith {

class GraphAccess {
 public:
  static KnnGraph make(Neighbors neighbors, Metric metric, GraphReport report);
  // In memory that `owner` keeps, on the host or a device.
  static KnnGraph make(const NeighborsView& neighbors, std::shared_ptr<const void> owner, Metric metric,
                       GraphReport report);
  // Its arrays, which nobody writes to.
  static NeighborsView view(const KnnGraph& graph) {
    return {const_cast<int64_t*>(graph.ids()), const_cast<float*>(graph.distances()), graph.rows(), graph.k(),
            graph.space()};
  }
};

}  // namespace kith
