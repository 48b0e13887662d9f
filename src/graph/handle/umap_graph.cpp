// What umap-learn and cuML take as a precomputed graph.
#include <kith/knn_graph.hpp>

#include "graph/handle/graph_check.hpp"

#include <algorithm>

namespace kith {

Neighbors KnnGraph::to_umap(const Resources& resources) const {
  check_distance(metric_, "UMAP wants one");
  const KnnGraph here = to(MemorySpace::host(), resources);
  check_graph(here, resources);
  check_full(here, "UMAP");
  Neighbors result(rows_, k_ + 1, resources);
  const NeighborsView out = result.view();
  for (int64_t i = 0; i < rows_; ++i) {
    out.ids[i * out.k] = i;
    out.distances[i * out.k] = 0.0f;
    std::copy_n(here.ids(i), k_, out.ids + i * out.k + 1);
    std::copy_n(here.distances(i), k_, out.distances + i * out.k + 1);
  }
  return result;
}

}  // namespace kith
