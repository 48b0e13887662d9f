#include "exact/product_search_cuda.hpp"

#include "cuda/error.hpp"
#include "kernels/matrix/knn_windows_cuda.hpp"
#include "kernels/rerank/coarse_knn_cuda.hpp"
#include "kernels/select/kth_value_cuda.hpp"
#include "kernels/select/select_rows_cuda.hpp"

#include <algorithm>

namespace kith {

void ProductSearch::select_groups(int64_t queries, int64_t groups) const {
  SelectInput input;
  input.values = at(layout_.minima);
  input.rows = queries;
  input.cols = input.row_stride = groups;
  const SelectProblem problem = problem_of(input, shape_.product.selected, SelectOrder::smallest);
  const SelectPlan plan = plan_select(problem, shape_.product.multiprocessors);
  launch_select_rows(input, {at(layout_.selected), at(layout_.groups), nullptr}, problem, plan,
                     at(layout_.select), stream_);
}

void ProductSearch::search(const DeviceRowsView& queries, int64_t first_query, const ProductBase& base,
                           uint64_t* neighbors) const {
  const ProductPlan& product = shape_.product;
  KITH_CUDA_CHECK(cudaMemsetAsync(failed().count, 0, sizeof(uint32_t), stream_));
  round_queries(queries, first_query, shape_.check_finite, base);
  if (product.rows_per_minimum > 0) return search_coarse(queries, base, neighbors);
  const int64_t count = queries.count;
  const int64_t groups = minima_of(product, base.rows.count);
  const ProductOperands operands = operands_of(count, base);
  const ProductSchedule schedule = schedule_product(count, base.rows.count, product.multiprocessors);
  auto* const minima = at(layout_.minima);
  if (product.rows_per_part > 0) {
    launch_product<ProductParts>(product.engine, operands, schedule, {minima, product.rows_per_part}, stream_);
  } else {
    launch_product<ProductMinima>(product.engine, operands, schedule, {minima, groups, product.tiles_per_group},
                                  stream_);
  }

  KnnWindowTask window;
  window.kind = shape_.kind;
  window.type = product.operands;
  window.cols = shape_.cols;
  window.queries = count;
  window.k = shape_.k;
  window.groups = groups;
  window.query_facts = at(layout_.query_facts);
  window.base_facts = base.operands.facts;
  window.thresholds = at(layout_.thresholds);
  window.key_limits = at(layout_.key_limits);
  if (product.selected > 0) {
    select_groups(count, groups);
    window.minima = at(layout_.selected);
    window.selected = product.selected;
    window.group_counts = product.capacity == 0 ? at(layout_.group_counts) : nullptr;
  } else {
    launch_kth_value({minima, count, groups, shape_.k, at(layout_.kth)}, stream_);
    window.kth = at(layout_.kth);
  }
  launch_knn_windows(window, stream_);

  RerankTask rerank = rerank_task(queries, base);
  rerank.key_limits = window.key_limits;
  rerank.neighbors = neighbors;
  if (product.capacity == 0) {
    rerank.group_counts = window.group_counts;
    rerank.groups = at(layout_.groups);
    rerank.group_stride = product.selected;
    rerank.tiles_per_group = product.tiles_per_group;
  } else {
    collect({window.thresholds, at(layout_.row_counts), at(layout_.candidates), product.capacity},
            product.room, base, rerank);
  }
  launch_rerank(rerank, failed(), stream_);
}

void ProductSearch::search_coarse(const DeviceRowsView& queries, const ProductBase& base, uint64_t* neighbors) const {
  CoarseKnnTask task;
  task.engine = shape_.product.engine;
  task.multiprocessors = shape_.product.multiprocessors;
  task.operands = operands_of(queries.count, base);
  task.query_facts = at(layout_.query_facts);
  task.base_facts = base.operands.facts;
  task.rows_per_minimum = shape_.product.rows_per_minimum;
  task.thresholds = at(layout_.thresholds);
  task.key_limits = at(layout_.key_limits);
  task.rerank = rerank_task(queries, base);
  task.rerank.room = shape_.product.room;
  task.row_tile_bytes = shape_.product.row_tile_bytes;
  task.rerank.neighbors = neighbors;
  launch_coarse_knn(task, failed(), at(layout_.coarse), stream_);
}

int64_t ProductSearch::search_failed(int64_t count, const DeviceRowsView& queries, const ProductBase& base,
                                     uint64_t* neighbors, const DirectSearch& search_directly) const {
  int64_t searched_directly = 0;
  const bool quick = failed_are_quick_directly(count, base.rows.count);
  for (int64_t first = 0; first < count; first += shape_.query_tile) {
    const int64_t tile = std::min(shape_.query_tile, count - first);
    const DeviceRowsView gathered = gather_failed(queries, first, tile);
    auto* const lists = at(layout_.failed_lists);
    if (quick) {
      search_directly(gathered, {lists, at(layout_.left_bounds), tile, shape_.k});
      launch_scatter_failed(failed(), first, tile, lists, shape_.k, neighbors, stream_);
      searched_directly += tile;
      continue;
    }
    const int64_t remaining = try_again(gathered, base);
    const DeviceLists found{at(layout_.left_lists), at(layout_.left_bounds), remaining, shape_.k};
    if (remaining > 0) search_directly(gather_left(gathered, remaining), found);
    launch_scatter_failed(left(), 0, remaining, found.neighbors, shape_.k, lists, stream_);
    searched_directly += remaining;
    launch_scatter_failed(failed(), first, tile, lists, shape_.k, neighbors, stream_);
  }
  return searched_directly;
}

// With the thresholds that the windows gave, into failed_lists; waits, and returns how many queries fail once more.
int64_t ProductSearch::try_again(const DeviceRowsView& queries, const ProductBase& base) const {
  KITH_CUDA_CHECK(cudaMemsetAsync(left().count, 0, sizeof(uint32_t), stream_));
  round_queries(queries, 0, false, base);
  RerankTask rerank = rerank_task(queries, base);
  rerank.key_limits = at(layout_.failed_limits);
  rerank.neighbors = at(layout_.failed_lists);
  collect({at(layout_.failed_thresholds), at(layout_.failed_counts),
           at(layout_.failed_candidates), shape_.product.retry_capacity},
          shape_.product.retry_room, base, rerank);
  launch_rerank(rerank, left(), stream_);
  return read(left().count);
}

}  // namespace kith
