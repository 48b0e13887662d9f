#include "exact/product_search_cuda.hpp"

#include <kith/error.hpp>

#include "cuda/error.hpp"
#include "kernels/rerank/coarse_knn_cuda.hpp"
#include "kernels/select/select_rows_cuda.hpp"

#include <algorithm>
#include <variant>

namespace kith {

void ProductSearch::search(const DeviceRowsView& queries, int64_t first_query, const ProductBase& base,
                           uint64_t* neighbors) const {
  KITH_CUDA_CHECK(cudaMemsetAsync(failed().count, 0, sizeof(uint32_t), stream_));
  round_queries(queries, first_query, shape_.check_finite, base);
  std::visit([&](const auto& way) { search_by(way, queries, base, neighbors); }, shape_.product.way);
}

// The product of which the minima are written, and what a window takes of it.
KnnWindowTask ProductSearch::find_minima(int rows_per_minimum, int64_t queries, const ProductBase& base) const {
  const ProductPlan& product = shape_.product;
  launch_minima(product.engine, operands_of(queries, base),
                schedule_product(queries, base.rows.count, product.multiprocessors), at(layout_.minima),
                rows_per_minimum, stream_);
  KnnWindowTask window;
  window.kind = shape_.kind;
  window.type = product.operands;
  window.cols = shape_.cols;
  window.queries = queries;
  window.k = shape_.k;
  window.groups = part_count(base.rows.count, rows_per_minimum);
  window.query_facts = at(layout_.query_facts);
  window.base_facts = base.operands.facts;
  window.thresholds = at(layout_.thresholds);
  window.key_limits = at(layout_.key_limits);
  return window;
}

void ProductSearch::select_groups(int64_t count, KnnWindowTask& window) const {
  SelectInput input;
  input.values = at(layout_.minima);
  input.rows = window.queries;
  input.cols = input.row_stride = window.groups;
  const SelectProblem problem = problem_of(input, count, SelectOrder::smallest);
  const SelectPlan plan = plan_select(problem, shape_.product.multiprocessors);
  launch_select_rows(input, {at(layout_.selected), at(layout_.groups), nullptr}, problem, plan, at(layout_.select),
                     stream_);
  window.minima = at(layout_.selected);
  window.selected = count;
}

void ProductSearch::search_by(const GroupedProduct& way, const DeviceRowsView& queries, const ProductBase& base,
                              uint64_t* neighbors) const {
  KnnWindowTask window = find_minima(way.rows_per_minimum, queries.count, base);
  select_groups(way.selected.count, window);
  window.group_counts = at(layout_.group_counts);
  launch_knn_windows(window, stream_);
  RerankTask rerank = rerank_task(queries, base);
  rerank.key_limits = window.key_limits;
  rerank.neighbors = neighbors;
  rerank.group_counts = window.group_counts;
  rerank.groups = at(layout_.groups);
  rerank.group_stride = way.selected.count;
  rerank.tiles_per_group = way.rows_per_minimum / kGroupRowsPerTile;
  launch_rerank(rerank, failed(), stream_);
}

void ProductSearch::search_by(const SecondProduct& way, const DeviceRowsView& queries, const ProductBase& base,
                              uint64_t* neighbors) const {
  KnnWindowTask window = find_minima(way.rows_per_minimum, queries.count, base);
  if (way.selected) {
    select_groups(way.selected->count, window);
  } else {
    launch_kth_value({at(layout_.minima), window.queries, window.groups, shape_.k, at(layout_.kth)}, stream_);
    window.kth = at(layout_.kth);
  }
  launch_knn_windows(window, stream_);
  RerankTask rerank = rerank_task(queries, base);
  rerank.key_limits = window.key_limits;
  rerank.neighbors = neighbors;
  collect({window.thresholds, at(layout_.row_counts), at(layout_.candidates), way.candidates.capacity},
          way.candidates.room, base, rerank);
  launch_rerank(rerank, failed(), stream_);
}

void ProductSearch::search_by(const CoarseProduct& way, const DeviceRowsView& queries, const ProductBase& base,
                              uint64_t* neighbors) const {
  CoarseKnnTask task;
  task.engine = shape_.product.engine;
  task.multiprocessors = shape_.product.multiprocessors;
  task.operands = operands_of(queries.count, base);
  task.query_facts = at(layout_.query_facts);
  task.base_facts = base.operands.facts;
  task.rows_per_minimum = way.rows_per_minimum;
  task.thresholds = at(layout_.thresholds);
  task.key_limits = at(layout_.key_limits);
  task.rerank = rerank_task(queries, base);
  task.rerank.room = way.room;
  task.row_tile_bytes = way.row_tile_bytes;
  task.rerank.neighbors = neighbors;
  launch_coarse_knn(task, failed(), at(layout_.coarse), stream_);
}

void ProductSearch::search_by(const RangeProduct&, const DeviceRowsView&, const ProductBase&, uint64_t*) const {
  throw InvalidState("the nearest rows were asked for with a plan for rows in range");
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
           at(layout_.failed_candidates), shape_.product.retry.capacity},
          shape_.product.retry.room, base, rerank);
  launch_rerank(rerank, left(), stream_);
  return read(left().count);
}

}  // namespace kith
