// Stands in for graphs built on a GPU in a build without CUDA.
#include "core/dispatch.hpp"
#include "graph/graph_backend_cuda.hpp"

namespace kith {

std::unique_ptr<GraphBackend> make_graph_backend_cuda(int, const MatrixView&, const GraphRowsWish&, const Resources&) {
  throw_no_cuda();
}

std::unique_ptr<GraphBackend> make_custom_graph_backend_cuda(int, const MatrixView&, const GraphRowsWish&,
                                                             const custom::GraphMetric&, const Resources&) {
  throw_no_cuda();
}

}  // namespace kith
