// Internal access to KnnGraph: construction from the neighbours that a method found, which need no checks, and its
// report.
#pragma once

#include <kith/knn_graph.hpp>

#include <memory>

namespace kith {

class GraphAccess {
 public:
  static KnnGraph make(Neighbors neighbors, Metric metric, GraphReport report);
  // The neighbours are in memory owned by `owner`, on the host or a device.
  static KnnGraph make(const NeighborsView& neighbors, std::shared_ptr<const void> owner, Metric metric,
                       GraphReport report);
  // The graph's arrays; must not be written to.
  static NeighborsView view(const KnnGraph& graph) {
    return {const_cast<int64_t*>(graph.ids()), const_cast<float*>(graph.distances()), graph.rows(), graph.k(),
            graph.space()};
  }
};

}  // namespace kith
