// Exact search with products on the matrix units: one batch of queries against one piece of a base.
//
//   1. operands of the queries (and of the base, unless it was prepared)
//   2. the product, of which the minima of groups of rows are written
//   3. the k-th smallest minimum, with its error bound, is a threshold (kernels/matrix/candidate_window.hpp)
//   4. small k: all rows of the groups below it are candidates, or where they are wide those of them that are below it
//      themselves; else a second product collects the rows below it
//   5. canonical keys of the candidates, sorted
// Rows of one or two columns use f32 differences instead of the product (kernels/matrix/narrow_window.hpp).
// Few queries of rows without operands are multiplied with the rows in place, and all values are written; operands are
// made only if queries fail.
// Few rows and many queries take the coarse path (kernels/rerank/coarse_knn_cuda.hpp), with its own steps from 2 on.
// Queries whose window has too many candidates fail. If many fail, they are searched among fewer rows
// (vicinities_cuda.hpp); the others are retried with a second product and more room. Queries that fail again, and those
// without a reliable window, go to the direct engine.
#pragma once

#include <kith/error.hpp>

#include "exact/product_step_cuda.hpp"
#include "exact/vicinities_cuda.hpp"
#include "kernels/matrix/knn_windows_cuda.hpp"
#include "kernels/matrix/narrow_minima_cuda.hpp"
#include "kernels/matrix/sift_groups_cuda.hpp"
#include "kernels/matrix/stream_product_cuda.hpp"
#include "kernels/rerank/coarse_knn_cuda.hpp"
#include "kernels/rerank/rerank_cuda.hpp"
#include "kernels/select/select_cuda.hpp"
#include "kernels/select/select_rows_cuda.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <variant>

namespace kith {

class ProductSearch : public ProductStep {
 public:
  explicit ProductSearch(const SearchRows& rows) : ProductStep(rows) {}
  using ProductStep::direct_steps;

  // Writes queries x k sorted neighbours, except for queries that fail; `first_query` is the number of the first.
  // Failures are appended to those of queries before `first_failing`, or start a new list if that is negative. Enqueues
  // and returns.
  void search(const DeviceRowsView& queries, int64_t first_query, int64_t first_failing, const ProductBase& base,
              uint64_t* neighbors) {
    first_failing_ = first_failing;
    if (first_failing == 0) rows_.context().fill(failed().count, 0, 1);
    round_queries(queries, first_query, task_.request.check_finite, base);
    std::visit([&](const auto& way) { search_by(way, queries, base, neighbors); }, product().way);
  }

  // Computes every key of some queries, at most query_tile, with the rows, and fills their lists.
  using DirectSearch = std::function<void(const DeviceRowsView& queries, const DeviceLists& lists)>;
  // Retries the `count` queries that failed in the last search. Waits for the retry; enqueues the rest. Returns how
  // many were searched directly.
  int64_t search_failed(int64_t count, const DeviceRowsView& queries, const ProductBase& base, uint64_t* neighbors,
                        const DirectSearch& search_directly) const {
    int64_t searched_directly = 0;
    const bool quick = failed_are_quick_directly(count, base.rows.count);
    for (int64_t first = 0; first < count; first += plan_.query_tile) {
      const int64_t tile = std::min(plan_.query_tile, count - first);
      const DeviceRowsView gathered = gather_failed(queries, first, tile);
      auto* const lists = at(layout_.failed_lists);
      if (quick) {
        search_directly(gathered, {lists, at(layout_.left_bounds), tile, task_.k});
        launch_scatter_failed(failed(), first, tile, lists, task_.k, neighbors, stream_);
        searched_directly += tile;
        continue;
      }
      const int64_t remaining = retry_failed(gathered, base);
      const DeviceLists found{at(layout_.left_lists), at(layout_.left_bounds), remaining, task_.k};
      if (remaining > 0) search_directly(gather_left(gathered, remaining), found);
      launch_scatter_failed(left(), 0, remaining, found.neighbors, task_.k, lists, stream_);
      searched_directly += remaining;
      launch_scatter_failed(failed(), first, tile, lists, task_.k, neighbors, stream_);
    }
    return searched_directly;
  }

  // The queries of a vicinity, every key with each of its rows. Enqueues and returns.
  void search_directly(const Vicinity& vicinity, const DirectSearch& search) const {
    for (int64_t first = 0; first < vicinity.queries.count; first += plan_.query_tile) {
      const int64_t tile = std::min(plan_.query_tile, vicinity.queries.count - first);
      search(slice_rows(vicinity.queries, first, tile),
             {vicinity.found + first * task_.k, at(layout_.left_bounds), tile, task_.k});
    }
  }

 private:
  float* thresholds() const { return at(layout_.thresholds) + first_failing_; }
  uint32_t* key_limits() const { return at(layout_.key_limits) + first_failing_; }

  // Enqueues the product that writes minima; returns the task of the windows that are made of them.
  KnnWindowTask find_minima(int rows_per_minimum, int64_t queries, const ProductBase& base) const {
    launch_minima(product().engine, operands_of(queries, base), schedule(queries, base), at(layout_.minima),
                  rows_per_minimum, stream_);
    return window_of(queries, part_count(base.rows.count, rows_per_minimum), base);
  }

  KnnWindowTask window_of(int64_t queries, int64_t groups, const ProductBase& base) const {
    KnnWindowTask window;
    window.kind = kind_;
    window.type = product().operands;
    window.cols = task_.shape.cols;
    window.queries = queries;
    window.k = task_.k;
    window.groups = groups;
    window.query_bounds = at(layout_.query_bounds);
    window.base_bounds = base.operands.bounds;
    window.thresholds = thresholds();
    window.key_limits = key_limits();
    return window;
  }

  // Selects the groups with the smallest minima, from which windows are made.
  void select_groups(int64_t count, KnnWindowTask& window) const {
    SelectInput input;
    input.values = at(layout_.minima);
    input.rows = window.queries;
    input.cols = input.row_stride = window.groups;
    const SelectProblem problem = problem_of(input, count, SelectOrder::smallest);
    const SelectPlan plan = plan_select(problem, product().multiprocessors);
    launch_select_rows(input, {at(layout_.selected), at(layout_.groups), nullptr}, problem, plan,
                       at(layout_.select_groups), stream_);
    window.minima = at(layout_.selected);
    window.selected = count;
  }

  KnnWindowTask choose_groups(const GroupedProduct& way, const DeviceRowsView& queries, const ProductBase& base) const {
    KnnWindowTask window = find_minima(way.rows_per_minimum, queries.count, base);
    select_groups(way.selected.count, window);
    window.group_counts = at(layout_.group_counts);
    launch_knn_windows(window, stream_);
    return window;
  }

  // The same for rows of few columns, from the rows themselves.
  KnnWindowTask choose_narrow_groups(const GroupedProduct& way, const DeviceRowsView& queries,
                                     const ProductBase& base) const {
    KnnWindowTask window = window_of(queries.count, part_count(base.rows.count, way.rows_per_minimum), base);
    window.group_counts = at(layout_.group_counts);
    if (kind_ == KeyKind::cosine && task_.shape.cols == 1) {
      // Two directions, and a few more by what rounding makes of them: all rows of one are as near. All queries fail,
      // and are searched among the rows without those that equal others.
      rows_.context().fill(window.group_counts, 0xFF, window.queries);
      rows_.context().fill(window.key_limits, 0, window.queries);
      rows_.context().fill(window.thresholds, 0xFF, window.queries);
      return window;
    }
    launch_narrow_minima({kind_, task_.shape.cols, queries, base.rows, at(layout_.minima), product().multiprocessors},
                         stream_);
    select_groups(way.selected.count, window);
    launch_narrow_windows(window, queries.inverse_norms, stream_);
    return window;
  }

  void search_by(const GroupedProduct& way, const DeviceRowsView& queries, const ProductBase& base,
                 uint64_t* neighbors) const {
    const KnnWindowTask window =
        way.narrow ? choose_narrow_groups(way, queries, base) : choose_groups(way, queries, base);
    RerankTask rerank = rerank_task(queries, base);
    rerank.key_limits = window.key_limits;
    rerank.neighbors = neighbors;
    if (!sift(way, window, base, rerank)) {
      rerank.group_counts = window.group_counts;
      rerank.groups = at(layout_.groups);
      rerank.group_stride = way.selected.count;
      rerank.tiles_per_group = way.rows_per_minimum / kGroupRowsPerTile;
    }
    launch_rerank(rerank, failed(first_failing_), stream_);
  }

  // Collects the candidates among the rows of the selected groups if rows are wide and queries many; false otherwise.
  // It reuses the memory of the minima, which are no longer needed.
  bool sift(const GroupedProduct& way, const KnnWindowTask& window, const ProductBase& base, RerankTask& rerank) const {
    constexpr int64_t kLeastCols = 256;
    constexpr int64_t kLeastQueries = 1024;
    constexpr int64_t kCandidates = 256;  // of a query, beyond which it fails
    if (window.cols < kLeastCols || window.queries < kLeastQueries || window.type != OperandType::half ||
        way.rows_per_minimum != kGroupRowsPerTile) {
      return false;
    }
    const SiftLayout layout(window.queries, window.groups, way.selected.count, kCandidates);
    if (layout.bytes > layout_.minima.bytes()) return false;
    std::byte* const memory = at(Slot<std::byte>{layout_.minima.offset, layout_.minima.bytes()});
    SiftTask task;
    task.operands = operands_of(window.queries, base);
    task.groups = at(layout_.groups);
    task.group_counts = window.group_counts;
    task.stride = way.selected.count;
    task.candidates = {window.thresholds, at(layout_.row_counts), layout.rows.in(memory), kCandidates};
    task.multiprocessors = product().multiprocessors;
    launch_sift(task, layout, memory, stream_);
    rerank.row_counts = task.candidates.counts;
    rerank.rows = task.candidates.rows;
    rerank.capacity = rerank.room = kCandidates;
    return true;
  }

  void search_by(const SecondProduct& way, const DeviceRowsView& queries, const ProductBase& base,
                 uint64_t* neighbors) const {
    KnnWindowTask window = find_minima(way.rows_per_minimum, queries.count, base);
    if (way.selected) {
      select_groups(way.selected->count, window);
    } else {
      launch_kth_value({at(layout_.minima), window.queries, window.groups, task_.k, at(layout_.kth)}, stream_);
      window.kth = at(layout_.kth);
    }
    launch_knn_windows(window, stream_);
    RerankTask rerank = rerank_task(queries, base);
    rerank.key_limits = window.key_limits;
    rerank.neighbors = neighbors;
    collect({window.thresholds, at(layout_.row_counts), at(layout_.candidates), way.candidates.capacity},
            way.candidates.room, base, rerank);
    launch_rerank(rerank, failed(first_failing_), stream_);
  }

  void search_by(const CoarseProduct& way, const DeviceRowsView& queries, const ProductBase& base,
                 uint64_t* neighbors) const {
    CoarseKnnTask task;
    task.engine = product().engine;
    task.multiprocessors = product().multiprocessors;
    task.operands = operands_of(queries.count, base);
    task.query_bounds = at(layout_.query_bounds);
    task.base_bounds = base.operands.bounds;
    task.rows_per_minimum = way.rows_per_minimum;
    task.thresholds = thresholds();
    task.key_limits = key_limits();
    task.rerank = rerank_task(queries, base);
    task.rerank.room = way.room;
    task.row_tile_bytes = way.row_tile_bytes;
    task.rerank.neighbors = neighbors;
    launch_coarse_knn(task, failed(first_failing_), at(layout_.coarse), stream_);
  }

  void search_by(const StreamedProduct& way, const DeviceRowsView& queries, const ProductBase& base,
                 uint64_t* neighbors) const {
    StreamProductTask task;
    task.base = {base.rows,           task_.shape.cols,      kind_, product().operands, base.operands.centre,
                 base.operands.bounds, base.operands.operands};
    task.queries = at(layout_.query_operands);
    task.query_count = queries.count;
    task.values = at(layout_.minima);
    task.stride = base.rows.count;
    task.first_bad = rows_.bad_row();
    task.multiprocessors = product().multiprocessors;
    task.engine = product().engine;
    launch_stream_product(task, stream_);
    KnnWindowTask window = window_of(queries.count, base.rows.count, base);
    select_groups(std::min(way.selected.count, base.rows.count), window);
    window.group_counts = at(layout_.group_counts);
    launch_knn_windows(window, stream_);
    RerankTask rerank = rerank_task(queries, base);
    rerank.key_limits = window.key_limits;
    rerank.neighbors = neighbors;
    // A count is negative if the window is unreliable; as unsigned it exceeds the capacity.
    rerank.row_counts = reinterpret_cast<const uint32_t*>(window.group_counts);
    rerank.rows = reinterpret_cast<const uint32_t*>(at(layout_.groups));
    rerank.capacity = window.selected;
    rerank.room = std::min(window.selected, product().retry.room);
    launch_rerank(rerank, failed(first_failing_), stream_);
  }

  void search_by(const RangeProduct&, const DeviceRowsView&, const ProductBase&, uint64_t*) const {
    throw InvalidState("the nearest rows were asked for with a plan for rows in range");
  }

  // Retries with the windows' thresholds, into failed_lists; waits, and returns how many queries fail again.
  int64_t retry_failed(const DeviceRowsView& queries, const ProductBase& base) const {
    KITH_CUDA_CHECK(cudaMemsetAsync(left().count, 0, sizeof(uint32_t), stream_));
    round_queries(queries, 0, false, base);
    RerankTask rerank = rerank_task(queries, base);
    rerank.key_limits = at(layout_.failed_limits);
    rerank.neighbors = at(layout_.failed_lists);
    collect({at(layout_.failed_thresholds), at(layout_.failed_counts), at(layout_.failed_candidates),
             product().retry.capacity},
            product().retry.room, base, rerank);
    launch_rerank(rerank, left(), stream_);
    return read(left().count);
  }

  int64_t first_failing_ = 0;
};

}  // namespace kith
