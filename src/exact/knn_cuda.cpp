// Exact search on a GPU: the steps of search_backend.hpp.
//
// Rows go to the device in pieces (or lie there already: a prepared base, a matrix in device memory). The product
// engine (ProductSearch) searches a piece for a batch of queries at a time and its lists are merged. The
// direct engine computes, for each piece and tile of queries, all keys in canonical arithmetic and keeps every query's
// k best: queries x rows x cols on the double-precision units. Memory is the plan's workspace.
#include <kith/custom_metric_cuda.hpp>
#include <kith/error.hpp>

#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "exact/product_step_cuda.hpp"
#include "exact/search_backend.hpp"
#include "exact/search_rows_cuda.hpp"
#include "exact/search_workspace_cuda.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/matrix/knn_windows_cuda.hpp"
#include "kernels/rerank/coarse_knn_cuda.hpp"
#include "kernels/rerank/rerank_cuda.hpp"
#include "kernels/select/select_cuda.hpp"
#include "kernels/select/select_rows_cuda.hpp"
#include "kernels/select/write_neighbors_cuda.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>

namespace kith {
namespace {

// Exact search with products on the matrix units: one batch of queries against one piece of a base.
//
//   1. operands of the queries (and of the base, unless it was prepared)
//   2. the product, of which the minima of groups of rows are written
//   3. the k-th smallest minimum, with its error bound, is a threshold (kernels/matrix/candidate_window.hpp)
//   4. small k: all rows of the groups below it are candidates; else a second product collects the rows below it
//   5. canonical keys of the candidates, sorted
// Few rows and many queries go the coarse path (kernels/rerank/coarse_knn_cuda.hpp), with steps of its own from 2 on.
// Queries whose window has too many candidates fail, and are tried again with a second product and much room; what
// fails then, or has a window that is not sure, is left to the direct engine.
class ProductSearch : public ProductStep {
 public:
  explicit ProductSearch(const SearchRows& rows) : ProductStep(rows) {}

  // Writes queries x k sorted neighbours, but for the queries that fail; `first_query` is the number of the first.
  // Enqueues and returns.
  void search(const DeviceRowsView& queries, int64_t first_query, const ProductBase& base, uint64_t* neighbors) const {
    KITH_CUDA_CHECK(cudaMemsetAsync(failed().count, 0, sizeof(uint32_t), stream_));
    round_queries(queries, first_query, task_.wish.check_finite, base);
    std::visit([&](const auto& way) { search_by(way, queries, base, neighbors); }, product().way);
  }

  // Computes every key of some queries, at most query_tile, with the rows, and fills their lists.
  using DirectSearch = std::function<void(const DeviceRowsView& queries, const DeviceLists& lists)>;
  // The `count` queries that have failed in the search just before. Waits for the second try; enqueues what follows.
  // Returns how many were searched directly.
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
      const int64_t remaining = try_again(gathered, base);
      const DeviceLists found{at(layout_.left_lists), at(layout_.left_bounds), remaining, task_.k};
      if (remaining > 0) search_directly(gather_left(gathered, remaining), found);
      launch_scatter_failed(left(), 0, remaining, found.neighbors, task_.k, lists, stream_);
      searched_directly += remaining;
      launch_scatter_failed(failed(), first, tile, lists, task_.k, neighbors, stream_);
    }
    return searched_directly;
  }

 private:
  // The product of which the minima are written, and what a window takes of it.
  KnnWindowTask find_minima(int rows_per_minimum, int64_t queries, const ProductBase& base) const {
    launch_minima(product().engine, operands_of(queries, base),
                  schedule_product(queries, base.rows.count, product().multiprocessors), at(layout_.minima),
                  rows_per_minimum, stream_);
    KnnWindowTask window;
    window.kind = kind_;
    window.type = product().operands;
    window.cols = task_.shape.cols;
    window.queries = queries;
    window.k = task_.k;
    window.groups = part_count(base.rows.count, rows_per_minimum);
    window.query_facts = at(layout_.query_facts);
    window.base_facts = base.operands.facts;
    window.thresholds = at(layout_.thresholds);
    window.key_limits = at(layout_.key_limits);
    return window;
  }

  // The groups with the smallest minima, for the window to go by.
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

  void search_by(const GroupedProduct& way, const DeviceRowsView& queries, const ProductBase& base,
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
    launch_rerank(rerank, failed(), stream_);
  }

  void search_by(const CoarseProduct& way, const DeviceRowsView& queries, const ProductBase& base,
                 uint64_t* neighbors) const {
    CoarseKnnTask task;
    task.engine = product().engine;
    task.multiprocessors = product().multiprocessors;
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

  void search_by(const RangeProduct&, const DeviceRowsView&, const ProductBase&, uint64_t*) const {
    throw InvalidState("the nearest rows were asked for with a plan for rows in range");
  }

  // With the thresholds that the windows gave, into failed_lists; waits, and returns how many queries fail once more.
  int64_t try_again(const DeviceRowsView& queries, const ProductBase& base) const {
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
};

custom::DeviceRows device_rows_for(const DeviceRowsView& rows) {
  return {rows.data, rows.dtype, rows.stride, rows.count, rows.list, rows.first_listed};
}

class KnnCuda final : public KnnBackend {
 public:
  KnnCuda(const SearchTask& task, const KnnCudaPlan& plan, const KeptRows* kept, const custom::TileMetric* metric,
          const Resources& resources)
      : task_(task),
        plan_(plan),
        layout_(task, plan),
        resources_(resources),
        metric_(metric),
        rows_(task_, plan_, kept, layout_, resources),
        products_(rows_),
        in_tiles_(selects_tiles(task_, plan_)) {}

  void begin(const MatrixView& queries, int64_t first_query) override {
    const DeviceGuard guard(device());
    queries_ = rows_.load_queries(queries, first_query);
    first_query_ = first_query;
    rows_seen_ = 0;
    unseen_.reset();
    selected_.reset();
    if (!products() && !in_tiles_) pad(lists_of(0, queries.rows()));  // the others write every list
  }

  void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter) override {
    const DeviceGuard guard(device());
    rows_.for_each_piece(base, first_row, ready, meter, [&](const ProductBase& piece) {
      if (products()) {
        search_products(piece, meter);
      } else {
        search_direct(piece, meter);
      }
      rows_seen_ += piece.rows.count;
    });
  }

  void finish(uint64_t* neighbors) override {
    const DeviceGuard guard(device());
    const DeviceLists lists = sorted_lists();
    const auto copy = [&] { rows_.context().copy_values(neighbors, lists.neighbors, lists.queries * lists.k); };
    copy();
    if (settle_last()) copy();
    rows_.context().synchronize();
  }

  void finish_on_device(const NeighborsView& out) override {
    const DeviceGuard guard(device());
    if (selected_) {
      launch_write_selected(*selected_, task_.k, task_.shape.metric, out, rows_.stream());
      selected_.reset();
      (void)settle_last();
      return;
    }
    const DeviceLists lists = sorted_lists();
    const auto write = [&] {
      if (task_.wish.without_self) {
        launch_write_others(task_.shape.metric, lists, first_query_, out, rows_.stream());
      } else {
        launch_write_neighbors(task_.shape.metric, lists, out, rows_.stream());
      }
    };
    write();
    if (settle_last()) write();
  }

 private:
  int device() const { return plan_.device.index; }
  bool products() const { return plan_.product.has_value(); }

  DeviceLists sorted_lists() const {
    const DeviceLists lists = lists_of(0, queries_.count);
    if (products()) return lists;
    if (!in_tiles_) launch_sort(lists, rows_seen_, rows_.stream());
    if (in_tiles_ && rows_seen_ == 0) pad(lists);
    return lists;
  }

  DeviceLists lists_of(int64_t first, int64_t count) const {
    return {rows_.at(layout_.lists) + first * task_.k, rows_.at(layout_.bounds) + first, count, task_.k};
  }

  void search_products(const ProductBase& piece, ProgressMeter& meter) {
    for (int64_t first = 0; first < queries_.count; first += plan_.product->queries) {
      const DeviceRowsView batch =
          slice_rows(queries_, first, std::min(plan_.product->queries, queries_.count - first));
      uint64_t* const lists = lists_of(first, batch.count).neighbors;
      uint64_t* const found = rows_seen_ == 0 ? lists : rows_.at(layout_.found);
      products_.search(batch, first, piece, found);
      if (is_all(batch, piece)) {
        unseen_ = piece;
      } else {
        settle(batch, piece, found);
      }
      if (found != lists) launch_merge_lists(found, lists, batch.count, task_.k, rows_.stream());
      meter.add(batch.count * piece.rows.count);
      meter.poll();
    }
  }

  // Whether nothing comes after it, and its rows stay where they are: then results are on their way before the host
  // looks at how the search went.
  bool is_all(const DeviceRowsView& batch, const ProductBase& piece) const {
    return rows_stay(task_) && batch.count == queries_.count && piece.rows.count == task_.rows;
  }

  // True where results have changed.
  bool settle_last() {
    if (!unseen_) return false;
    const ProductBase piece = *unseen_;
    unseen_.reset();
    selected_.reset();
    if (!products()) {
      (void)rows_.read_status(&piece);
      return false;
    }
    return settle(queries_, piece, lists_of(0, queries_.count).neighbors);
  }

  // Waits, and searches again for the queries that products are not sure of; false where there are none.
  bool settle(const DeviceRowsView& batch, const ProductBase& piece, uint64_t* found) const {
    const SearchStatus done = rows_.read_status(&piece);
    if (done.failed == 0) return false;
    const int64_t directly = products_.search_failed(
        done.failed, batch, piece, found,
        [&](const DeviceRowsView& queries, const DeviceLists& some) { search_every_key(queries, piece, some); });
    resources_.log(LogLevel::info, std::to_string(done.failed) + " of " + std::to_string(batch.count) +
                                       " queries have many rows that are about as near: " + std::to_string(directly) +
                                       " were searched directly");
    return true;
  }

  // What products have left: at most query_tile queries.
  void search_every_key(const DeviceRowsView& queries, const ProductBase& piece, const DeviceLists& lists) const {
    if (!in_tiles_) pad(lists);
    int64_t seen = 0;
    rows_.for_each_tile(piece, [&](const DirectTile& tile) {
      search_tile(queries, tile, lists, seen);
      seen += tile.rows.count;
    });
    if (!in_tiles_) launch_sort(lists, seen, rows_.stream());
    if (in_tiles_ && seen == 0) pad(lists);
  }

  void search_direct(const ProductBase& piece, ProgressMeter& meter) {
    for (int64_t first = 0; first < queries_.count; first += plan_.query_tile) {
      const DeviceRowsView tile = slice_rows(queries_, first, std::min(plan_.query_tile, queries_.count - first));
      const DirectTile rows{piece.rows, piece.first_row, piece.numbers};
      uint32_t* const unchecked = first == 0 ? rows_.unchecked_rows() : nullptr;
      const bool all = is_all(tile, piece);
      if (all && in_tiles_ && !task_.wish.result_space.host_readable() && !task_.wish.without_self) {
        compute_keys(tile, rows.rows, unchecked);
        selected_ = select_tile(tile.count, rows);
      } else {
        search_tile(tile, rows, lists_of(first, tile.count), rows_seen_, unchecked);
      }
      if (all) {
        unseen_ = piece;
      } else {
        (void)rows_.read_status(&piece);  // so that progress is true and a cancelled search ends soon
      }
      meter.add(tile.count * piece.rows.count);
      meter.poll();
    }
  }

  void pad(const DeviceLists& lists) const { rows_.context().fill(lists.neighbors, 0xFF, lists.queries * lists.k); }

  // Of a tile: ordered, or plain where tiles are selected from at once.
  uint32_t* keys() const { return rows_.at(layout_.keys); }
  float* plain_keys() const { return rows_.at(Slot<float>{layout_.keys.offset, layout_.keys.count}); }
  // Where k is no larger than 2,048, the k nearest of a tile of plain keys are selected as from any matrix
  // (select_rows_cuda.hpp): one read of the keys. Larger lists are kept in row order by select_cuda.hpp instead.
  PackSelectedTask select_tile(int64_t queries, const DirectTile& tile) const {
    SelectInput input;
    input.values = plain_keys();
    input.rows = queries;
    input.cols = tile.rows.count;
    input.row_stride = plan_.row_tile;
    const SelectProblem problem = problem_of(input, task_.k, SelectOrder::smallest);
    float* const keys = rows_.at(layout_.tile_keys);
    int32_t* const columns = rows_.at(layout_.tile_columns);
    launch_select_rows(input, {keys, columns, nullptr}, problem, plan_select(problem, plan_.multiprocessors),
                       rows_.at(layout_.select_tile), rows_.stream());
    return {keys, columns, queries * task_.k, tile.first_row, tile.numbers, nullptr};
  }

  // Every key of a tile, and the lists of what it and the `seen` rows before it have. They are sorted at once, or left
  // in row order for launch_sort.
  void search_tile(const DeviceRowsView& queries, const DirectTile& tile, const DeviceLists& lists, int64_t seen,
                   uint32_t* first_bad = nullptr) const {
    compute_keys(queries, tile.rows, first_bad);
    if (in_tiles_ && queries.count > 0) {
      PackSelectedTask selected = select_tile(queries.count, tile);
      selected.neighbors = seen == 0 ? lists.neighbors : rows_.at(layout_.tile_found);
      launch_pack_selected(selected, rows_.stream());
      if (seen > 0) {
        launch_merge_lists(selected.neighbors, lists.neighbors, queries.count, task_.k, rows_.stream());
      }
    }
    if (in_tiles_) return;
    launch_select(lists, {keys(), plan_.row_tile, tile.rows.count, tile.first_row, tile.numbers}, seen, rows_.stream());
  }

  void compute_keys(const DeviceRowsView& queries, const DeviceRowsView& rows, uint32_t* first_bad) const {
    if (metric_ == nullptr) {
      DistanceTask task{queries, rows, task_.shape.cols, key_kind(task_.shape.metric), keys(), plan_.row_tile};
      if (in_tiles_) task.form = KeyForm::plain;
      task.first_bad = first_bad;
      return launch_distance(task, rows_.stream());
    }
    metric_->distances(
        metric_->metric,
        {device_rows_for(queries), device_rows_for(rows), task_.shape.cols, plain_keys(), plan_.row_tile},
        rows_.stream());
    if (!in_tiles_) launch_order_keys({keys(), queries.count, rows.count, plan_.row_tile}, rows_.stream());
  }

  const SearchTask task_;
  const KnnCudaPlan plan_;
  const KnnWorkspace layout_;
  const Resources resources_;
  const custom::TileMetric* metric_;
  SearchRows rows_;
  ProductSearch products_;
  const bool in_tiles_;
  DeviceRowsView queries_;
  int64_t first_query_ = 0;
  int64_t rows_seen_ = 0;
  std::optional<PackSelectedTask> selected_;  // of the one tile of a search whose results lie on the device
  std::optional<ProductBase> unseen_;         // the one piece of a search of which the host has not seen how it went
};

}  // namespace

std::unique_ptr<KnnBackend> make_knn_cuda(const SearchTask& task, const KnnCudaPlan& plan, const KeptRows* kept,
                                          const custom::TileMetric* metric, const Resources& resources) {
  const DeviceGuard guard(plan.device.index);
  return std::make_unique<KnnCuda>(task, plan, kept, metric, resources);
}

void write_nothing_cuda(Metric metric, const NeighborsView& out, const Resources& resources) {
  const DeviceGuard guard(out.space.device);
  const DeviceContext context(out.space.device, resources.options().stream);
  launch_write_neighbors(metric, DeviceLists(), out, context.stream());
}

std::shared_ptr<PreparedBase> prepare_base_cuda(int device, const MatrixView& base, const PrepareOptions& options,
                                                const Resources& resources) {
  (void)usable_gpu_when_idle(Device::cuda(device));  // or says that there is none
  const DeviceGuard guard(device);
  check_on_device(base, "base", device);
  return std::make_shared<PreparedBaseCuda>(device, base, options, resources);
}

}  // namespace kith
