#include <kith/knn_graph.hpp>

#include <kith/error.hpp>

#include "core/host_array.hpp"
#include "cuda/device_memory.hpp"
#include "graph/graph_access.hpp"
#include "graph/graph_check.hpp"

#include <utility>

namespace kith {
namespace {

// Bytes of a graph's arrays, as rows that copy_to_device() takes.
template <typename T>
MatrixView bytes_of_rows(const T* values, const KnnGraph& graph) {
  const int64_t row = array_bytes<T>(graph.k());
  return {values, DType::u8, {graph.rows(), row, row}, graph.space()};
}

}  // namespace

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

const GraphReport& KnnGraph::report() const {
  static const GraphReport none;
  return report_ ? *report_ : none;
}

void KnnGraph::validate(const Resources& resources) const {
  const KnnGraph here = to(MemorySpace::host(), resources);
  check_graph(here, resources);
}

KnnGraph KnnGraph::to(MemorySpace space, const Resources& resources) const {
  if (space == space_ || (space.host_readable() && space_.host_readable())) return *this;
  if (space.host_readable()) {
    Neighbors copy(rows_, k_, resources);
    copy_to_host(ids_, array_bytes<int64_t>(rows_ * k_), space_.device, copy.view().ids);
    copy_to_host(distances_, array_bytes<float>(rows_ * k_), space_.device, copy.view().distances);
    return GraphAccess::make(std::move(copy), metric_, report());
  }
  const int64_t id_bytes = array_bytes<int64_t>(rows_ * k_);
  const auto memory = allocate_on_device(array_bytes<float>(rows_ * k_) + id_bytes, "the graph", space.device, resources);
  auto* const ids = reinterpret_cast<int64_t*>(memory.get());
  auto* const distances = reinterpret_cast<float*>(memory.get() + id_bytes);
  copy_to_device(bytes_of_rows(ids_, *this), memory.get(), space.device, resources);
  copy_to_device(bytes_of_rows(distances_, *this), memory.get() + id_bytes, space.device, resources);
  return GraphAccess::make({ids, distances, rows_, k_, space}, memory, metric_, report());
}

}  // namespace kith
