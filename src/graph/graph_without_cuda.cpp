// Stands in for graphs on a GPU in a build without CUDA.
#include "core/dispatch.hpp"
#include "graph/graph_backend_cuda.hpp"
#include "graph/graph_check_cuda.hpp"
#include "graph/without_self_cuda.hpp"

namespace kith {

std::unique_ptr<GraphBackend> make_graph_backend_cuda(int, const MatrixView&, const GraphRowsWish&, const Resources&) {
  throw_no_cuda();
}

std::unique_ptr<GraphBackend> make_custom_graph_backend_cuda(int, const MatrixView&, const GraphRowsWish&,
                                                             const custom::GraphMetric&, const Resources&) {
  throw_no_cuda();
}

int64_t first_wrong_row_cuda(const KnnGraph&, const Resources&) { throw_no_cuda(); }

void put_without_self_cuda(const NeighborsView&, int64_t, const NeighborsView&, const Resources&) { throw_no_cuda(); }

}  // namespace kith
