#include <kith/distributed.hpp>

#include "core/float_mode.hpp"
#include "graph/build/method/graph_on_ranks.hpp"

namespace kith {

GraphReport knn_graph_folder(Communicator& ranks, const VectorFile& x, const std::string& folder,
                             const KnnGraphParams& params, const GraphWork& work, const Resources& resources) {
  return graph_on_ranks(ranks, x, folder, params, work, resources);
}

KnnGraph knn_graph(Communicator& ranks, const MatrixView& x, const KnnGraphParams& params, const Resources& resources) {
  const DefaultFloatMode mode;
  return graph_on_ranks(ranks, x, params, resources);
}

GraphReport knn_graph(Communicator& ranks, const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                      const Resources& resources) {
  const DefaultFloatMode mode;
  return graph_on_ranks(ranks, x, out, params, resources);
}

KnnGraph knn_graph(Communicator& ranks, const VectorFile& x, const KnnGraphParams& params, const Resources& resources) {
  const DefaultFloatMode mode;
  return graph_on_ranks(ranks, x, params, resources);
}

}  // namespace kith
