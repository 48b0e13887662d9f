// Exact search on a GPU: the steps of search_backend.hpp.
//
// Rows are copied to the device in pieces, or are there already: a prepared base, a matrix in device memory. The
// product engine (ProductSearch) searches a piece for a batch of queries at a time, and its lists are merged. The
// direct engine computes, for each piece and tile of queries, all keys in canonical arithmetic and keeps every query's
// k best: queries x rows x cols on the double-precision units. Memory is the plan's workspace.
#include <kith/custom_metric_cuda.hpp>
#include <kith/error.hpp>

#include "core/reservation.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "exact/product_search_cuda.hpp"
#include "exact/search_backend.hpp"
#include "exact/search_rows_cuda.hpp"
#include "exact/search_workspace_cuda.hpp"
#include "exact/vicinities_cuda.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/rerank/few_nearest_cuda.hpp"
#include "kernels/rerank/rerank_cuda.hpp"
#include "kernels/rerank/screened_nearest_cuda.hpp"
#include "kernels/select/select_cuda.hpp"
#include "kernels/select/select_rows_cuda.hpp"
#include "kernels/select/write_neighbors_cuda.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kith {
namespace {

static_assert(kFewReportBytes + kFewNearestQueries * kFewNearestMostK * int64_t{sizeof(uint64_t)} <=
              PinnedPage::kDownBytes);

custom::DeviceRows device_rows_for(const DeviceRowsView& rows) {
  return {rows.data, rows.dtype, rows.stride, rows.count, rows.list, rows.first_listed};
}

class KnnCuda final : public KnnBackend {
 public:
  // `depth`: it searches a part of the rows for a search that does so for another, and so on.
  KnnCuda(const SearchTask& task, const KnnCudaPlan& plan, const KnnCudaExtras& extras, const Resources& resources,
          int depth = 0)
      : task_(task),
        plan_(plan),
        layout_(task, plan),
        resources_(resources),
        metric_(extras.metric),
        beyond_(extras.beyond),
        depth_(depth),
        rows_(task_, plan_, extras.kept, layout_, resources),
        products_(rows_),
        in_tiles_(selects_tiles(task_, plan_)) {}

  void begin(const MatrixView& queries, int64_t first_query) override {
    const DeviceGuard guard(device());
    queries_ = rows_.load_queries(queries, first_query);
    first_query_ = first_query;
    rows_seen_ = 0;
    unseen_.reset();
    selected_.reset();
    few_ = rows_.page() == nullptr ? Few::none : Few::begun;
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
    if (few_ == Few::waits) {
      FewResults results = few_results();
      results.neighbors = reinterpret_cast<uint64_t*>(rows_.page()->down() + kFewReportBytes);
      if (search_few(results)) {
        std::copy_n(results.neighbors, queries_.count * task_.k, neighbors);
        return;
      }
    }
    const DeviceLists lists = sorted_lists();
    const auto copy = [&] { rows_.context().copy_values(neighbors, lists.neighbors, lists.queries * lists.k); };
    copy();
    if (finish_last()) copy();
    rows_.context().synchronize();
  }

  void finish_on_device(const NeighborsView& out) override {
    const DeviceGuard guard(device());
    if (few_ == Few::waits) {
      const DeviceLists lists = lists_of(0, queries_.count);
      FewResults results = few_results();
      if (task_.request.without_self) {
        results.neighbors = lists.neighbors;
      } else {
        results.out = out;
        results.exit = ResultExit(task_.shape.metric);
      }
      if (search_few(results)) {
        if (!task_.request.without_self) return;
        return launch_write_others(task_.shape.metric, lists, first_query_, out, rows_.stream());
      }
    }
    if (selected_) {
      launch_write_selected(*selected_, task_.k, task_.shape.metric, out, rows_.stream());
      selected_.reset();
      (void)finish_last();
      return;
    }
    const DeviceLists lists = sorted_lists();
    const auto write = [&] {
      if (task_.request.without_self) {
        launch_write_others(task_.shape.metric, lists, first_query_, out, rows_.stream());
      } else {
        launch_write_neighbors(task_.shape.metric, lists, out, rows_.stream());
      }
    };
    write();
    if (finish_last()) write();
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
    if (leaves_to_few(piece, meter)) return;
    const bool waits = waits_for_failures(task_, plan_) && piece.rows.count == task_.rows;
    if (waits) unseen_ = piece;
    for (int64_t first = 0; first < queries_.count; first += plan_.product->queries) {
      const DeviceRowsView batch =
          slice_rows(queries_, first, std::min(plan_.product->queries, queries_.count - first));
      uint64_t* const lists = lists_of(first, batch.count).neighbors;
      uint64_t* const found = rows_seen_ == 0 ? lists : rows_.at(layout_.found);
      products_.search(batch, first, waits ? first : 0, piece, found);
      if (!waits) {
        finish(batch, piece, found);
      } else if (batch.count < queries_.count) {
        (void)rows_.read_status(&piece);  // so that progress is true and a cancelled search ends soon
      }
      if (found != lists) launch_merge_lists(found, lists, batch.count, task_.k, rows_.stream());
      meter.add(batch.count * piece.rows.count);
      meter.poll();
    }
  }

  // Whether this piece is the whole base and stays in place: then results are copied before the host checks whether
  // queries failed.
  bool is_all(const DeviceRowsView& batch, const ProductBase& piece) const {
    return rows_stay(task_) && batch.count == queries_.count && piece.rows.count == task_.rows;
  }

  // True where results have changed.
  bool finish_last() {
    if (!unseen_) return false;
    const ProductBase piece = *unseen_;
    unseen_.reset();
    selected_.reset();
    if (!products()) {
      (void)rows_.read_status(&piece);
      return false;
    }
    return finish(queries_, piece, lists_of(0, queries_.count).neighbors);
  }

  // Waits, then searches failed queries again; false if no query failed.
  bool finish(const DeviceRowsView& batch, const ProductBase& piece, uint64_t* found) const {
    const SearchStatus done = rows_.read_status(&piece);
    if (done.failed == 0) return false;
    if (plan_.product->streams()) {  // what follows multiplies operands
      make_operands(task_.shape.metric, plan_.product->operands, piece.rows, task_.shape.cols, piece.operands, nullptr,
                    rows_.stream(), false);
    }
    const int64_t left = search_apart(done.failed, batch, piece, found);
    const int64_t directly = products_.search_failed(
        left, batch, piece, found,
        [&](const DeviceRowsView& queries, const DeviceLists& some) { search_every_key(queries, piece, some); });
    resources_.log(LogLevel::info, fmt::format("{} of {} queries have many rows that are about as near: {} were "
                                               "searched among fewer rows, {} were searched directly",
                                               done.failed, batch.count, done.failed - left, directly));
    return true;
  }

  // Searches as many of the `count` failed queries as possible among fewer rows. Returns how many remain on the list of
  // failed queries: all of them if memory beyond the plan is short.
  int64_t search_apart(int64_t count, const DeviceRowsView& queries, const ProductBase& piece,
                       uint64_t* neighbors) const {
    constexpr int kMostDepth = 3;
    if (beyond_ == nullptr || depth_ == kMostDepth ||
        products_.direct_steps(count, piece.rows.count) < plan_.apart.look)
      return count;
    const int64_t own = VicinityLayout(task_, count, piece.rows.count).bytes;
    const int64_t wanted = own + 2 * plan_.device_bytes;
    const int64_t bytes = std::min(wanted, device_memory_left(device(), *beyond_) / 2);
    if (bytes < own) return count;
    std::optional<Reservation> memory;
    std::optional<Vicinities> vicinities;
    try {
      memory.emplace((kMostDepth - depth_) * Vicinities::kHostBytes, bytes, *beyond_);
      vicinities.emplace(rows_, count, piece.rows.count, memory->resources());
    } catch (const OutOfMemory&) {
      return count;  // others have taken it
    }
    return search_vicinities(count, queries, piece, neighbors, *vicinities,
                             memory->resources().with_stream(rows_.stream()));
  }

  int64_t search_vicinities(int64_t count, const DeviceRowsView& queries, const ProductBase& piece, uint64_t* neighbors,
                            const Vicinities& vicinities, const Resources& more) const {
    const int64_t rows = piece.rows.count;
    const auto search = [&](const Vicinity& vicinity) { return search_among(vicinity, more); };
    if (depth_ == 0 && count >= queries.count / 16) {
      const auto unequal = vicinities.unequal_rows(piece);
      if (unequal && vicinities.search_all(count, queries, *unequal, neighbors, search)) return 0;
      // Where memory is too short for that: vicinities take less.
    }
    const auto least = static_cast<int64_t>(plan_.apart.pays / products_.direct_steps(1, rows)) + 1;
    if (plan_.product->operands == OperandType::bytes) return count;
    const int64_t left = vicinities.search(count, least, queries, piece, neighbors, search);
    if (left < least || piece.kept != nullptr || !vicinities.has_far_rows(piece)) return left;
    // No row counts as far for queries that are far themselves: search them among all rows again, with bounds for all.
    const bool searched = vicinities.search_all(left, queries, piece, neighbors,
                                                [&](const Vicinity& all) { return search_within(all, more, false); });
    return searched ? 0 : left;
  }

  // Computes every key if there are few; otherwise runs a nested search. False if that would take long and memory is
  // short.
  bool search_among(const Vicinity& vicinity, const Resources& more) const {
    const double steps = products_.direct_steps(vicinity.queries.count, vicinity.rows.rows.count);
    if (vicinity.narrower && steps > plan_.apart.quick) return search_within(vicinity, more, true);
    products_.search_directly(vicinity, [&](const DeviceRowsView& some, const DeviceLists& lists) {
      search_every_key(some, vicinity.rows, lists);
    });
    return true;
  }

  // False where memory is too short for it.
  bool search_within(const Vicinity& vicinity, const Resources& more, bool parts_far_rows) const try {
    const DeviceRowsView& queries = vicinity.queries;
    SearchTask task = task_;
    task.shape.queries = queries.count;
    task.shape.rows = task.rows = vicinity.rows.rows.count;
    task.shape.query_space = task.shape.base_space = MemorySpace::cuda(device());
    task.shape.queries_in_memory = task.shape.base_in_memory = task.shape.base_checked = true;
    task.request = {.k = task_.k, .check_finite = false};
    task.filter = FilterPath::none;
    task.prepared = false;
    const KnnCudaPlan plan = plan_knn_cuda(task, cuda_device_when_idle(device()),
                                           {kNoLimit, more.device_memory()->available(), 1}, {.apart = plan_.apart});
    KnnCuda inner(task, plan, {nullptr, nullptr, &more}, more.with_log({}), depth_ + 1);
    for (int64_t first = 0; first < queries.count; first += plan.query_batch) {
      const int64_t some = std::min(plan.query_batch, queries.count - first);
      const DeviceLists lists = inner.search_rows(slice_rows(queries, first, some), vicinity.rows, parts_far_rows);
      rows_.context().copy_values(vicinity.found + first * task_.k, lists.neighbors, some * task_.k);
    }
    return true;
  } catch (const OutOfMemory&) {
    return false;
  }

  // Searches rows that are on the device for another search.
  DeviceLists search_rows(const DeviceRowsView& queries, const ProductBase& rows, bool parts_far_rows) {
    const Resources quiet = resources_.with_progress({});
    ProgressMeter meter("search", 1, quiet);
    queries_ = queries;
    rows_seen_ = 0;
    rows_.reset_status();
    if (!products() && !in_tiles_) pad(lists_of(0, queries.count));
    for (int64_t first = 0; first < rows.rows.count; first += piece_rows(plan_)) {
      ProductBase piece = rows.part(first, std::min(piece_rows(plan_), rows.rows.count - first));
      if (products()) {
        rows_.make_ready(false, piece, parts_far_rows);
        search_products(piece, meter);
      } else {
        search_direct(piece, meter);
      }
      rows_seen_ += piece.rows.count;
    }
    (void)finish_last();
    return sorted_lists();
  }

  // Computes every key of queries that products could not decide, at most query_tile of them.
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

  // Whether a single launch does the search once the place of the results is known. Otherwise checks the queries.
  bool leaves_to_few(const ProductBase& piece, ProgressMeter& meter) {
    if (few_ != Few::begun) return false;
    if (is_all(queries_, piece) && (!products() || piece.screen.codes != nullptr)) {
      few_ = Few::waits;
      unseen_ = piece;
      meter.add(queries_.count * piece.rows.count);
      meter.poll();
      return true;
    }
    few_ = Few::none;
    rows_.look_at_queries(queries_);
    return false;
  }

  FewResults few_results() const {
    FewResults results;
    results.k = task_.k;
    results.first_row = unseen_->first_row;
    results.numbers = unseen_->numbers;
    return results;
  }

  // Waits. False if the byte copy of the rows did not decide: then products have searched them.
  bool search_few(const FewResults& results) {
    const ProductBase piece = *unseen_;
    auto* const report = reinterpret_cast<FewReport*>(rows_.page()->down());
    unseen_.reset();
    few_ = Few::none;
    if (products()) {
      launch_screened(piece, results, report);
    } else {
      launch_few(piece, results, report);
    }
    rows_.context().synchronize();
    rows_.page()->finished();
    SearchStatus status{kNoBadRow, kNoBadRow, kNoBadRow, kNoBadRow};
    if (task_.request.check_finite) status.bad_query = report->bad_query;
    status.bad_row = report->bad_row;
    rows_.check_status(status, &piece);
    if (report->failed == 0) return true;
    const Resources quiet = resources_.with_progress({});
    ProgressMeter meter("search", 1, quiet);
    rows_.look_at_queries(queries_);
    rows_seen_ = 0;
    search_products(piece, meter);
    rows_seen_ = piece.rows.count;
    return false;
  }

  void launch_few(const ProductBase& piece, const FewResults& results, FewReport* report) {
    FewNearestTask task;
    task.distance = {queries_, piece.rows, task_.shape.cols, key_kind(task_.shape.metric), keys(), plan_.row_tile};
    task.words = rows_.page()->words();
    if (rows_.unchecked_rows() != nullptr) task.distance.first_bad = &task.words->bad_row;
    task.results = results;
    task.minima = rows_.at(layout_.minima_of_few);
    task.report = report;
    task.bad_row = rows_.bad_row_before();
    launch_few_nearest(task, rows_.inline_queries(), plan_.multiprocessors, rows_.stream());
  }

  void launch_screened(const ProductBase& piece, const FewResults& results, FewReport* report) {
    ScreenedNearestTask task;
    task.kind = key_kind(task_.shape.metric);
    task.query = queries_;
    task.rows = piece.rows;
    task.cols = task_.shape.cols;
    task.screen = piece.screen;
    task.results = results;
    task.lowers = rows_.at(layout_.lowers);
    task.minima = rows_.at(layout_.screen_minima);
    task.words = rows_.page()->words();
    task.report = report;
    task.bad_row = rows_.bad_row_before();
    launch_screened_nearest(task, rows_.inline_queries(), plan_.multiprocessors, rows_.stream());
  }

  void search_direct(const ProductBase& piece, ProgressMeter& meter) {
    if (leaves_to_few(piece, meter)) return;
    for (int64_t first = 0; first < queries_.count; first += plan_.query_tile) {
      const DeviceRowsView tile = slice_rows(queries_, first, std::min(plan_.query_tile, queries_.count - first));
      const DirectTile rows{piece.rows, piece.first_row, piece.numbers, piece.centre};
      uint32_t* const unchecked = first == 0 ? rows_.unchecked_rows() : nullptr;
      const bool all = is_all(tile, piece);
      if (all && in_tiles_ && !task_.request.result_space.host_readable() && !task_.request.without_self) {
        compute_keys(tile, rows, unchecked);
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

  // Keys of a tile: ordered, or plain where tiles are selected from at once.
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

  // Computes every key of a tile and merges them into the lists, which hold `seen` rows before it. The lists are sorted
  // at once, or stay in row order for launch_sort.
  void search_tile(const DeviceRowsView& queries, const DirectTile& tile, const DeviceLists& lists, int64_t seen,
                   uint32_t* first_bad = nullptr) const {
    compute_keys(queries, tile, first_bad);
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

  void compute_keys(const DeviceRowsView& queries, const DirectTile& tile, uint32_t* first_bad) const {
    const DeviceRowsView& rows = tile.rows;
    if (metric_ == nullptr) {
      DistanceTask task{queries, rows, task_.shape.cols, key_kind(task_.shape.metric), keys(), plan_.row_tile};
      if (in_tiles_) task.form = KeyForm::plain;
      task.first_bad = first_bad;
      task.centre = tile.centre;
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
  const Resources* beyond_;
  const int depth_;
  SearchRows rows_;
  ProductSearch products_;
  const bool in_tiles_;
  // Whether a single launch may find everything (takes_few(), takes_screen()); it waits for the place of the results.
  enum class Few : uint8_t { none, begun, waits };
  Few few_ = Few::none;
  DeviceRowsView queries_;
  int64_t first_query_ = 0;
  int64_t rows_seen_ = 0;
  std::optional<PackSelectedTask> selected_;  // of the one tile of a search whose results are on the device
  std::optional<ProductBase> unseen_;         // the one piece of a search of which the host has not seen how it went
};

}  // namespace

std::unique_ptr<KnnBackend> make_knn_cuda(const SearchTask& task, const KnnCudaPlan& plan, const KnnCudaExtras& extras,
                                          const Resources& resources) {
  const DeviceGuard guard(plan.device.index);
  return std::make_unique<KnnCuda>(task, plan, extras, resources);
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
