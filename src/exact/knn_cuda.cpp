// Exact search on a GPU: the steps of knn_backend.hpp.
//
// Rows go to the device in pieces (or lie there already: a prepared base, a matrix in device memory). The product
// engine (product_search_cuda.hpp) searches a piece for a batch of queries at a time and its lists are merged. The
// direct engine computes, for each piece and tile of queries, all keys in canonical arithmetic and keeps every query's
// k best: queries x rows x cols on the double-precision units. Memory is the plan's workspace.
#include <kith/custom_metric_cuda.hpp>

#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "exact/knn_backend.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "exact/product_search_cuda.hpp"
#include "exact/search_rows_cuda.hpp"
#include "exact/search_workspace_cuda.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/rerank/rerank_cuda.hpp"
#include "kernels/select/select_cuda.hpp"
#include "kernels/select/select_rows_cuda.hpp"
#include "kernels/select/write_neighbors_cuda.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kith {
namespace {

// The direct engine's selection where k is no larger than 2,048: the k nearest of a tile of f32 keys are selected as
// from any matrix (select_rows_cuda.hpp), packed, and merged with those of the tiles before. Larger lists are kept in
// row order by select_cuda.hpp instead.
//
// Cost: one read of the keys; memory for three lists of k and what selection takes.
struct SelectedTile {
  const float* keys = nullptr;
  int64_t stride = 0;
  int64_t queries = 0;
  int64_t rows = 0;
  int64_t first_row = 0;
  const uint32_t* numbers = nullptr;
};

class TileSelect {
 public:
  TileSelect(const TileSelectShape& shape, std::byte* memory, cudaStream_t stream)
      : shape_(shape), layout_(shape), memory_(memory), stream_(stream) {}

  // Sorted lists of k, padded: of this tile, or where it is not the first merged with those that are there. Enqueues.
  void run(const SelectedTile& tile, bool first, uint64_t* lists) const;
  // Of the one tile there is, not yet as lists. Enqueues.
  PackSelectedTask select(const SelectedTile& tile) const;

 private:
  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(memory_);
  }

  TileSelectShape shape_;
  TileSelectLayout layout_;
  std::byte* memory_;
  cudaStream_t stream_;
};

PackSelectedTask TileSelect::select(const SelectedTile& tile) const {
  SelectInput input;
  input.values = tile.keys;
  input.rows = tile.queries;
  input.cols = tile.rows;
  input.row_stride = tile.stride;
  const SelectProblem problem = problem_of(input, shape_.k, SelectOrder::smallest);
  launch_select_rows(input, {at(layout_.keys), at(layout_.columns), nullptr}, problem,
                     plan_select(problem, shape_.multiprocessors), at(layout_.select), stream_);
  return {at(layout_.keys), at(layout_.columns), tile.queries * shape_.k, tile.first_row,
          tile.numbers,            nullptr};
}

void TileSelect::run(const SelectedTile& tile, bool first, uint64_t* lists) const {
  if (tile.queries == 0) return;
  PackSelectedTask selected = select(tile);
  selected.neighbors = first ? lists : at(layout_.found);
  launch_pack_selected(selected, stream_);
  if (!first) launch_merge_lists(selected.neighbors, lists, tile.queries, shape_.k, stream_);
}

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
        products_(product_shape(task_, plan_), rows_.at(layout_.products), rows_.product_counts(),
                  rows_.stream()),
        in_tiles_(tile_select_shape(task_, plan_).suits()),
        tile_select_(tile_select_shape(task_, plan_), rows_.at(layout_.select), rows_.stream()) {}

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
    return {rows_.at(layout_.lists) + first * task_.k, rows_.at(layout_.bounds) + first,
            count, task_.k};
  }

  void search_products(const ProductBase& piece, ProgressMeter& meter) {
    for (int64_t first = 0; first < queries_.count; first += plan_.product->queries) {
      const DeviceRowsView batch = slice_rows(queries_, first, std::min(plan_.product->queries, queries_.count - first));
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
        selected_ = tile_select_.select(selected_tile(tile, rows));
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

  void pad(const DeviceLists& lists) const {
    rows_.context().fill(lists.neighbors, 0xFF, lists.queries * lists.k);
  }

  // Of a tile: ordered, or plain where tiles are selected from at once.
  uint32_t* keys() const { return rows_.at(layout_.keys); }
  float* plain_keys() const { return rows_.at(Slot<float>{layout_.keys.offset, layout_.keys.count}); }
  SelectedTile selected_tile(const DeviceRowsView& queries, const DirectTile& tile) const {
    return {plain_keys(), plan_.row_tile, queries.count, tile.rows.count, tile.first_row,
            tile.numbers};
  }

  // Every key of a tile, and the lists of what it and the `seen` rows before it have. They are sorted at once, or left
  // in row order for launch_sort.
  void search_tile(const DeviceRowsView& queries, const DirectTile& tile, const DeviceLists& lists, int64_t seen,
                   uint32_t* first_bad = nullptr) const {
    compute_keys(queries, tile.rows, first_bad);
    if (in_tiles_) return tile_select_.run(selected_tile(queries, tile), seen == 0, lists.neighbors);
    launch_select(lists, {keys(), plan_.row_tile, tile.rows.count, tile.first_row, tile.numbers}, seen, rows_.stream());
  }

  void compute_keys(const DeviceRowsView& queries, const DeviceRowsView& rows, uint32_t* first_bad) const {
    if (metric_ == nullptr) {
      DistanceTask task{queries, rows, task_.shape.cols, key_kind(task_.shape.metric), keys(), plan_.row_tile};
      if (in_tiles_) task.form = KeyForm::plain;
      task.first_bad = first_bad;
      return launch_distance(task, rows_.stream());
    }
    metric_->distances(metric_->metric,
                       {device_rows_for(queries), device_rows_for(rows), task_.shape.cols, plain_keys(),
                        plan_.row_tile},
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
  const TileSelect tile_select_;
  DeviceRowsView queries_;
  int64_t first_query_ = 0;
  int64_t rows_seen_ = 0;
  std::optional<PackSelectedTask> selected_;  // of the one tile of a search whose results lie on the device
  std::optional<ProductBase> unseen_;  // the one piece of a search of which the host has not seen how it went
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
