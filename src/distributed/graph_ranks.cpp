#include <kith/distributed.hpp>

#include "graph/build/method/graph_on_ranks.hpp"

namespace kith {

GraphReport knn_graph_folder(Communicator& ranks, const VectorFile& x, const std::string& folder,
                             const KnnGraphParams& params, const GraphWork& work, const Resources& resources) {
  return graph_on_ranks(ranks, x, folder, params, work, resources);
}

}  // namespace kith
