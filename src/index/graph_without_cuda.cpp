// Replaces the search of graphs on a GPU in a build without CUDA.
#include "core/dispatch.hpp"
#include "index/graph_gpu.hpp"

namespace kith {

QueriesLeft search_graph_on_gpu(int, const GpuGraphSearch&, const MatrixView&, const NeighborsView&, const Resources&) {
  throw_no_cuda();
}

}  // namespace kith
