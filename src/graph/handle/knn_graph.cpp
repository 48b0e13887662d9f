#include <kith/knn_graph.hpp>

#include <kith/error.hpp>

#include "core/within_limits.hpp"
#include "graph/handle/graph_access.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/handle/graph_output.hpp"

#include <utility>

namespace kith {

KnnGraph GraphAccess::make(Neighbors neighbors, Metric metric, GraphReport report) {
  const auto kept = std::make_shared<Neighbors>(std::move(neighbors));
  return make(kept->view(), kept, metric, std::move(report));
}

KnnGraph GraphAccess::make(const NeighborsView& neighbors, std::shared_ptr<const void> owner, Metric metric,
                           GraphReport report) {
  KnnGraph graph;
  graph.ids_ = neighbors.ids;
  graph.distances_ = neighbors.distances;
  graph.rows_ = neighbors.queries;
  graph.k_ = neighbors.k;
  graph.space_ = neighbors.space;
  graph.metric_ = metric;
  graph.owner_ = std::move(owner);
  graph.report_ = std::make_shared<const GraphReport>(std::move(report));
  return graph;
}

KnnGraph::KnnGraph(Neighbors neighbors, Metric metric, const Resources& resources)
    : KnnGraph(GraphAccess::make(std::move(neighbors), metric, {})) {
  validate(resources);
}

KnnGraph::KnnGraph(const NeighborsView& neighbors, std::shared_ptr<const void> owner, Metric metric,
                   const Resources& resources)
    : KnnGraph(GraphAccess::make(neighbors, std::move(owner), metric, {})) {
  if (space_.host_readable()) validate(resources);
}

KnnGraph KnnGraph::unchecked(const NeighborsView& neighbors, std::shared_ptr<const void> owner, Metric metric) {
  return GraphAccess::make(neighbors, std::move(owner), metric, {});
}

const GraphReport& KnnGraph::report() const {
  static const GraphReport none;
  return report_ ? *report_ : none;
}

void KnnGraph::validate(const Resources& resources) const {
  check_graph(*this, resources);
}

KnnGraph KnnGraph::to(MemorySpace space, const Resources& resources) const {
  return within_limits("a copy of the graph", resources,
                       [&](const Resources& used) { return graph_in(space, *this, used); });
}

}  // namespace kith
