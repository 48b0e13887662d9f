// What umap-learn and cuML take as a precomputed graph.
#include <kith/knn_graph.hpp>

#include "graph/handle/graph_check.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/lists/counted_work.hpp"

#include <algorithm>

namespace kith {

Neighbors KnnGraph::to_umap(const Resources& resources) const {
  check_distance(metric_, "UMAP wants one");
  check_graph(*this, resources);
  return within_limits("UMAP's graph", resources, [&](const Resources& used) {
    const KnnGraph here = graph_in(MemorySpace::host(), *this, used);
    Neighbors result(rows_, k_ + 1, used);
    if (only_counts(used)) return result;
    check_full(here, "UMAP");
    const NeighborsView out = result.view();
    for (int64_t i = 0; i < rows_; ++i) {
      out.ids[i * out.k] = i;
      out.distances[i * out.k] = 0.0f;
      std::copy_n(here.ids(i), k_, out.ids + i * out.k + 1);
      std::copy_n(here.distances(i), k_, out.distances + i * out.k + 1);
    }
    return result;
  });
}

}  // namespace kith
