// Stands in for graphs on a GPU in a build without CUDA.
#include "core/dispatch.hpp"
#include "graph/build/cells/cells.hpp"
#include "graph/build/cells_on_disk/block_compare.hpp"
#include "graph/build/cells_on_disk/near_ranks.hpp"
#include "graph/build/cells_on_disk/source_ranks.hpp"
#include "graph/build/exact/without_self.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/lists/graph_lists.hpp"
#include "graph/search/build/walk_build_gpu.hpp"

namespace kith {

std::unique_ptr<GraphLists> make_graph_lists_cuda(int, const MatrixView&, const GraphRowsParams&,
                                                  const custom::GraphMetric*, const Resources&) {
  throw_no_cuda();
}

std::unique_ptr<CellSteps> make_cell_steps_cuda(GraphLists&, const CellsParams&) { throw_no_cuda(); }

BlockShape with_rows_cuda(BlockShape, int64_t) { throw_no_cuda(); }
Footprint block_footprint_cuda(const BlockShape&, const Resources&) { throw_no_cuda(); }
std::unique_ptr<BlockComparer> make_block_comparer_cuda(const PieceSource&, const BlockShape&, const Resources&) {
  throw_no_cuda();
}

std::unique_ptr<NearRanks::Device> make_near_ranks_cuda(const CellRanking&, int64_t, const Resources&) {
  throw_no_cuda();
}
Footprint near_ranks_footprint_cuda(const CellRanking&, int64_t, const Resources&) { throw_no_cuda(); }
std::unique_ptr<SourceRanks::Device> make_source_ranks_cuda(const CellRanking&, int64_t, int64_t, const Resources&) {
  throw_no_cuda();
}
Footprint source_ranks_footprint_cuda(const CellRanking&, int64_t, int64_t, const Resources&) { throw_no_cuda(); }

std::unique_ptr<DescentSteps> make_descent_steps_cuda(GraphLists&, const DescentRules&, const DescentPasses&) {
  throw_no_cuda();
}

int64_t first_wrong_row_cuda(const KnnGraph&, const Resources&) { throw_no_cuda(); }

void put_without_self_cuda(const NeighborsView&, int64_t, const NeighborsView&, const Resources&) { throw_no_cuda(); }

std::unique_ptr<WalkBuildGpu> make_walk_build_gpu(const WalkRows&, int64_t, const Resources&, int64_t,
                                                  const WalkArraysOnGpu&) {
  throw_no_cuda();
}

}  // namespace kith
