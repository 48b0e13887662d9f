#include "kernels/rerank/coarse_knn_cuda.hpp"

#include "kernels/rerank/rerank_cuda.hpp"
#include "kernels/matrix/knn_windows_cuda.hpp"

namespace kith {

void launch_minima(ProductEngine engine, const ProductOperands& operands, const ProductSchedule& schedule,
                   float* minima, int rows_per_minimum, cudaStream_t stream) {
  if (rows_per_minimum < kGroupRowsPerTile) {
    return launch_product<ProductParts>(engine, operands, schedule, {minima, rows_per_minimum}, stream);
  }
  const int64_t groups = part_count(operands.row_count, rows_per_minimum);
  launch_product<ProductMinima>(engine, operands, schedule, {minima, groups, rows_per_minimum / kGroupRowsPerTile},
                                stream);
}

void launch_coarse_knn(const CoarseKnnTask& task, const FailedQueries& failed, std::byte* memory, cudaStream_t stream) {
  const ProductOperands& operands = task.operands;
  const int64_t rows = operands.row_count;
  const int each = task.rows_per_minimum;
  const bool tiled = task.row_tile_bytes.has_value();
  const CoarseLayout layout(operands.query_count, rows, each, tiled ? task.rerank.room : 0);
  uint32_t* const marks = layout.marks.in(memory);
  float* const minima = layout.minima.in(memory);
  CandidateLists lists;
  if (tiled) {
    lists.entries = layout.lists.in(memory);
    lists.counts = layout.counts.in(memory);
  }
  const ProductSchedule schedule =
      coarse_schedule(task.engine, operands.query_count, rows, task.multiprocessors, operands.chunks);
  launch_minima(task.engine, operands, schedule, minima, each, stream);

  KnnWindowTask window;
  window.kind = task.rerank.kind;
  window.type = operands.type;
  window.cols = task.rerank.cols;
  window.queries = operands.query_count;
  window.k = task.rerank.k;
  window.minima = minima;
  window.groups = part_count(rows, each);
  window.query_bounds = task.query_bounds;
  window.base_bounds = task.base_bounds;
  window.thresholds = task.thresholds;
  window.key_limits = task.key_limits;
  window.row_counts = lists.counts;
  launch_kth_windows(window, stream);

  launch_product<ProductMarks>(task.engine, operands, schedule, {task.thresholds, marks}, stream);
  RerankTask rerank = task.rerank;
  rerank.key_limits = task.key_limits;
  rerank.marks = marks;
  if (tiled) {
    const RowTiles tiles = cut_row_tiles(rows, rerank.cols, *task.row_tile_bytes, task.multiprocessors);
    return launch_rerank_tiles(rerank, tiles, lists, failed, stream);
  }
  launch_rerank(rerank, failed, stream);
}

}  // namespace kith
