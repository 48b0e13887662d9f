// Range search on a GPU.
//
// Products collect the rows below a threshold, which follows from the radius and the error bound (range_window); their
// canonical keys decide, and hits are sorted and copied to the host, or stay (range_runs_cuda.hpp). A query with more
// candidates than fit is searched again in slices of the piece. Queries that still have too many, or no reliable
// window, go to the direct engine, as all queries do for metrics without products: it computes every canonical key of a
// tile and collects those in range. Time grows with the number of hits; memory is the plan's workspace.
#include "core/ordered_key.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/error.hpp"
#include "exact/exact_search.hpp"
#include "exact/product_step_cuda.hpp"
#include "exact/range_runs.hpp"
#include "exact/range_runs_cuda.hpp"
#include "exact/search_rows_cuda.hpp"
#include "exact/search_workspace_cuda.hpp"
#include "kernels/matrix/knn_windows_cuda.hpp"
#include "kernels/rerank/range_order_cuda.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <variant>
#include <vector>

namespace kith {
namespace {

// The numbers of `count` consecutive queries.
std::vector<uint32_t> numbers_from(int64_t first, int64_t count) {
  std::vector<uint32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), static_cast<uint32_t>(first));
  return numbers;
}

// Delivers the hits of some queries to the store: on the host, or on the device if results stay there.
class RangeDelivery {
 public:
  RangeDelivery(const RangeWorkspace& layout, const SearchRows& rows, RangeRuns& runs, DeviceRangeRuns* staying)
      : layout_(layout), rows_(rows), runs_(runs), staying_(staying) {}

  RangeTarget target() const {
    return {rows_.at(layout_.hits), static_cast<uint32_t>(rows_.plan().hits), &rows_.status()->hits,
            rows_.at(layout_.starts), rows_.at(layout_.counts)};
  }
  // Call before searching `queries` queries, and before searching again for those not delivered.
  void begin(int64_t queries) const {
    rows_.context().fill(target().counts, 0xFF, queries);
    begin_again();
  }
  void begin_again() const { rows_.context().fill(target().total, 0, 1); }

  // Waits. `numbers[i]`: query i's number in the batch. Returns how many queries could not be delivered.
  int64_t take(const std::vector<uint32_t>& numbers, std::vector<bool>* taken = nullptr) {
    const size_t queries = numbers.size();
    std::vector<uint32_t> counts(queries);
    std::vector<uint32_t> starts(queries);
    copy(counts.data(), target().counts, queries);
    copy(starts.data(), target().starts, queries);
    rows_.context().synchronize();
    int64_t missing = 0;
    int64_t found = 0;
    std::vector<uint32_t> order;
    for (size_t i = 0; i < queries; ++i) {
      if (taken != nullptr && (*taken)[i]) continue;
      if (counts[i] == kNotDelivered) {
        ++missing;
        continue;
      }
      if (taken != nullptr) (*taken)[i] = true;
      if (counts[i] == 0) continue;
      found += counts[i];
      order.push_back(static_cast<uint32_t>(i));
    }
    if (staying_ != nullptr) {
      uint64_t* const room = staying_->add(found, DeviceRangeRuns::Order::by_key);
      if (room == nullptr) return missing;
      for (const uint32_t i : order) staying_->add_run(numbers[i], counts[i], starts[i]);
      copy(room, target().hits, found);
      launch_key_extremes(room, found, staying_->extremes(), rows_.stream());
      return missing;
    }
    // The runs follow each other in the order in which they were allocated.
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return starts[a] < starts[b]; });
    RangeRuns::Part* const part = runs_.add(static_cast<int64_t>(order.size()), found);
    if (part == nullptr) return missing;
    auto* run = part->runs.data();
    for (const uint32_t i : order) *run++ = {numbers[i], counts[i]};
    copy(part->neighbors.data(), target().hits, found);
    rows_.context().synchronize();
    return missing;
  }

  // Whether hits stay on the device; then take_tile() collects those of a tile of keys. It waits, and throws errors
  // that the status holds for the piece's rows.
  bool stays() const { return staying_ != nullptr; }
  // `all`: the tile has every row and every query.
  void take_tile(const RangeTileTask& tile, const ProductBase& piece, const std::vector<uint32_t>& numbers, bool all) {
    const auto queries = static_cast<size_t>(tile.queries);
    auto* const counts = rows_.at(layout_.tile_counts);
    auto* const starts = rows_.at(layout_.tile_starts);
    uint32_t extremes[2] = {};
    const std::vector<uint32_t> counted = read_counts(tile, piece, extremes);
    std::vector<int64_t> places(queries + 1, 0);
    for (size_t q = 0; q < queries; ++q) {
      places[q + 1] = places[q];
      for (size_t part = 0; part < kRangeTileParts; ++part) places[q + 1] += counted[part * queries + q];
    }
    const std::optional<RangeWord> word = all && places[queries] > 0 && std::is_sorted(numbers.begin(), numbers.end())
                                              ? staying_->only_words(tile.queries, extremes)
                                              : std::nullopt;
    uint64_t* const room = word ? staying_->add_words(places[queries], *word)
                                : staying_->add(places[queries], DeviceRangeRuns::Order::by_row);
    if (room == nullptr) return;
    for (size_t q = 0; q < queries; ++q) {
      staying_->add_run(numbers[q], static_cast<uint32_t>(places[q + 1] - places[q]), places[q]);
    }
    copy(starts, places.data(), queries);
    if (word) return launch_write_tile_words(tile, counts, starts, *word, room, rows_.stream());
    launch_write_tile(tile, counts, starts, room, rows_.stream());
  }
  // Counts the rows of a tile that are in range, over all queries. Waits, as take_tile() does.
  int64_t count_tile(const RangeTileTask& tile, const ProductBase& piece) const {
    uint32_t extremes[2] = {};
    const std::vector<uint32_t> counted = read_counts(tile, piece, extremes);
    return std::accumulate(counted.begin(), counted.end(), int64_t{0});
  }

 private:
  std::vector<uint32_t> read_counts(const RangeTileTask& tile, const ProductBase& piece,
                                    uint32_t (&extremes)[2]) const {
    auto* const counts = rows_.at(layout_.tile_counts);
    launch_count_tile(tile, counts, staying_->extremes(), rows_.stream());
    std::vector<uint32_t> counted(static_cast<size_t>(tile.queries * kRangeTileParts));
    copy(counted.data(), counts, counted.size());
    copy(extremes, staying_->extremes(), std::size(extremes));
    (void)rows_.read_status(&piece);
    return counted;
  }
  template <typename T, typename Count>
  void copy(T* to, const T* from, Count count) const {
    rows_.context().copy_values(to, from, static_cast<int64_t>(count));
  }

  const RangeWorkspace& layout_;
  const SearchRows& rows_;
  RangeRuns& runs_;
  DeviceRangeRuns* const staying_;
};

class RangeSearch : private ProductStep {
 public:
  RangeSearch(const SearchRows& rows, float most, RangeDelivery& delivery)
      : ProductStep(rows), keys_(at(layout_.keys)), most_(most), delivery_(delivery) {}

  // Before a batch of so many queries.
  void begin(int64_t queries) { whole_batch_ = queries; }
  // All rows of a piece; the batch's first query is number `first`.
  void search(const DeviceRowsView& queries, int64_t first, const ProductBase& piece) {
    round_queries(queries, first, task_.request.check_finite, piece);
    RangeWindowTask window;
    window.kind = kind_;
    window.type = product().operands;
    window.cols = task_.shape.cols;
    window.queries = queries.count;
    window.most = most_;
    window.query_bounds = at(layout_.query_bounds);
    window.base_bounds = piece.operands.bounds;
    window.thresholds = at(layout_.thresholds);
    window.key_limits = at(layout_.key_limits);
    launch_range_windows(window, stream_);
    find(queries, window.thresholds, window.key_limits, piece, failed());
    const SearchStatus done = rows_.read_status(&piece);
    delivery_.take(numbers_from(first, queries.count));
    if (done.failed > 0) search_failed(done.failed, queries, first, piece);
  }

  // Computes every key of at most query_tile queries; `numbers`: theirs in the batch.
  void search_directly(const DeviceRowsView& queries, const std::vector<uint32_t>& numbers, const ProductBase& piece) {
    if (queries.count == 0) return;
    rows_.for_each_tile(piece, [&](const DirectTile& tile) {
      launch_distance(task_.shape.metric, queries, tile.rows, task_.shape.cols, keys_, plan_.row_tile, stream_);
      RangeTileTask task;
      task.keys = keys_;
      task.stride = plan_.row_tile;
      task.queries = queries.count;
      task.rows = tile.rows.count;
      task.first_row = static_cast<uint32_t>(tile.first_row);
      task.numbers = tile.numbers;
      task.limit = ordered_key(most_);
      if (delivery_.stays()) {
        const bool all =
            queries.count == whole_batch_ && tile.rows.count == task_.shape.rows && tile.numbers == nullptr;
        return delivery_.take_tile(task, piece, numbers, all);
      }
      task.target = delivery_.target();
      delivery_.begin(queries.count);
      std::vector<bool> taken(numbers.size());
      for (;;) {  // each time the first that come fill the room there is
        launch_range_tile(task, stream_);
        if (delivery_.take(numbers, &taken) == 0) break;
        delivery_.begin_again();
      }
    });
  }

  // The same for any number of queries, from number `first_query` on.
  void search_all_directly(const DeviceRowsView& queries, int64_t first_query, const ProductBase& piece) {
    for (int64_t first = 0; first < queries.count; first += plan_.query_tile) {
      const DeviceRowsView tile = slice_rows(queries, first, std::min(plan_.query_tile, queries.count - first));
      search_directly(tile, numbers_from(first_query + first, tile.count), piece);
    }
  }

  // Whether products would find more hits than fit, estimated from a sample of the rows. Used only if results stay on
  // the device, where their copy does not dominate, and computing every key is fast. The piece needs no operands.
  // Waits.
  bool many_in_range(const DeviceRowsView& queries, const ProductBase& piece) {
    constexpr int64_t kSample = 256;
    const int64_t step = piece.rows.count / kSample;
    if (!delivery_.stays() || step < 32 || !failed_are_quick_directly(queries.count, piece.rows.count)) return false;
    if (piece.rows.list != nullptr || piece.rows.inverse_norms != nullptr) return false;
    DeviceRowsView sample = piece.rows;
    sample.stride *= step;
    sample.count = kSample;
    const DeviceRowsView some = slice_rows(queries, 0, std::min(plan_.query_tile, queries.count));
    launch_distance(task_.shape.metric, some, sample, task_.shape.cols, keys_, plan_.row_tile, stream_);
    RangeTileTask task;
    task.keys = keys_;
    task.stride = plan_.row_tile;
    task.queries = some.count;
    task.rows = kSample;
    task.limit = ordered_key(most_);
    return delivery_.count_tile(task, piece) * step > some.count * candidates().capacity;
  }

 private:
  const CandidateRoom& candidates() const { return std::get<RangeProduct>(product().way).candidates; }

  void find(const DeviceRowsView& queries, const float* thresholds, const uint32_t* limits, const ProductBase& base,
            const FailedQueries& not_found) const {
    rows_.context().fill(not_found.count, 0, 1);
    delivery_.begin(queries.count);
    RerankTask rerank = rerank_task(queries, base);
    rerank.key_limits = limits;
    rerank.range = delivery_.target();
    collect({thresholds, at(layout_.row_counts), at(layout_.candidates), candidates().capacity}, candidates().room,
            base, rerank);
    launch_rerank(rerank, not_found, stream_);
  }

  // The queries' numbers, in the order in which they are gathered.
  std::vector<uint32_t> read_numbers(const uint32_t* list, int64_t count) const {
    std::vector<uint32_t> numbers(static_cast<size_t>(count));
    rows_.context().copy_values(numbers.data(), list, count);
    rows_.context().synchronize();
    return numbers;
  }

  void search_failed(int64_t count, const DeviceRowsView& queries, int64_t first_query, const ProductBase& piece) {
    std::vector<uint32_t> numbers = read_numbers(failed().queries, count);
    for (uint32_t& number : numbers) number += static_cast<uint32_t>(first_query);
    const bool quick = are_quick_directly(count, piece.rows.count);  // slices are many tries
    for (int64_t first = 0; first < count; first += plan_.query_tile) {
      const int64_t tile = std::min(plan_.query_tile, count - first);
      const DeviceRowsView gathered = gather_failed(queries, first, tile);
      const std::vector<uint32_t> some(numbers.begin() + first, numbers.begin() + first + tile);
      if (quick) {
        search_directly(gathered, some, piece);
      } else {
        search_slices(gathered, some, piece);
      }
    }
  }

  // The thresholds hold for every slice: they come from bounds of the whole base.
  void search_slices(const DeviceRowsView& queries, const std::vector<uint32_t>& numbers, const ProductBase& piece) {
    constexpr int64_t kSlices = 16;
    constexpr int64_t kLeastRows = 8192;
    const int64_t wanted = std::max(divide_up(piece.rows.count, kSlices), kLeastRows);
    const int64_t slice_rows_each = divide_up(wanted, kQueryTile) * kQueryTile;
    round_queries(queries, 0, false, piece);
    for (int64_t first = 0; first < piece.rows.count; first += slice_rows_each) {
      const ProductBase slice =
          piece.slice(first, std::min(slice_rows_each, piece.rows.count - first), operand_chunks(task_, product()));
      find(queries, at(layout_.failed_thresholds), at(layout_.failed_limits), slice, left());
      const int64_t remaining = read(left().count);
      delivery_.take(numbers);
      if (remaining == 0) continue;
      std::vector<uint32_t> left_numbers = read_numbers(left().queries, remaining);
      for (uint32_t& number : left_numbers) number = numbers[number];
      search_directly(gather_left(queries, remaining), left_numbers, slice);
    }
  }

  int64_t whole_batch_ = 0;
  uint32_t* const keys_;
  const float most_;
  RangeDelivery& delivery_;
};

class RangeCuda final : public RangeBackend {
 public:
  RangeCuda(const PlannedSearch& search, float most, const Resources& results)
      : task_(search.task()),
        plan_(search.plan_as<KnnCudaPlan>()),
        layout_(task_, plan_),
        rows_(task_, plan_, search.kept(), layout_, search.resources()),
        runs_(results),
        staying_(task_.request.result_space.host_readable()
                     ? nullptr
                     : std::make_unique<DeviceRangeRuns>(task_.shape.rows, rows_.shared_context(), results)),
        delivery_(layout_, rows_, runs_, staying_.get()),
        search_(rows_, most, delivery_) {}

  void begin(const MatrixView& queries, int64_t first_query) override {
    const DeviceGuard guard(plan_.device.index);
    queries_ = rows_.load_queries(queries, first_query);
    search_.begin(queries_.count);
  }

  void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter) override {
    const DeviceGuard guard(plan_.device.index);
    const bool products = plan_.product.has_value();
    const int64_t step = products ? plan_.product->queries : plan_.query_tile;
    // If results stay, all rows may be in range: then nothing is multiplied, so operands are made only when needed. A
    // mask is applied to them.
    const bool stays = products && delivery_.stays();
    const bool makes_late = stays && task_.filter != FilterPath::mask;
    const auto use = [&](const ProductBase& given) {
      ProductBase piece = given;
      bool has_operands = !makes_late;
      bool checked = false;
      for (int64_t first = 0; first < queries_.count; first += step) {
        const DeviceRowsView batch = slice_rows(queries_, first, std::min(step, queries_.count - first));
        if (stays && search_.many_in_range(batch, piece)) {
          if (!checked) rows_.check_finite(queries_, piece);
          checked = true;
          search_.search_all_directly(batch, first, piece);  // which sees what the check has found
        } else if (products) {
          if (!has_operands) rows_.make_ready(ready != nullptr, piece);
          has_operands = true;
          search_.search(batch, first, piece);
        } else {
          if (first == 0) (void)rows_.read_status(&piece);
          search_.search_directly(batch, numbers_from(first, batch.count), piece);
        }
        meter.add(batch.count * piece.rows.count);
        meter.poll();
      }
    };
    rows_.for_each_piece(base, first_row, ready, meter, use, !makes_late);
  }

  CollectedHits finish(ProgressMeter& meter) override { return runs_.collect(queries_.count, meter); }
  void begin_finish_on_device() override {
    const DeviceGuard guard(plan_.device.index);
    staying_->sort_ahead(queries_.count);
  }
  bool finish_on_device(const RangeOnDevice& out) override {
    const DeviceGuard guard(plan_.device.index);
    return staying_->write(queries_.count, out.offsets, {task_.shape.metric, out.ids, out.distances});
  }
  bool overflowed() const override { return staying_ != nullptr ? staying_->overflowed() : runs_.overflowed(); }
  int64_t counted() const override { return staying_ != nullptr ? staying_->counted() : runs_.counted(); }
  void clear() override { staying_ != nullptr ? staying_->clear() : runs_.clear(); }
  void only_count() override { staying_ != nullptr ? staying_->only_count() : runs_.only_count(); }

 private:
  const SearchTask task_;
  const KnnCudaPlan plan_;
  const RangeWorkspace layout_;
  SearchRows rows_;
  RangeRuns runs_;
  std::unique_ptr<DeviceRangeRuns> staying_;
  RangeDelivery delivery_;
  RangeSearch search_;
  DeviceRowsView queries_;
};

}  // namespace

std::unique_ptr<RangeBackend> make_range_cuda(const PlannedSearch& search, float most, const Resources& results) {
  const DeviceGuard guard(search.plan().device.index);
  return std::make_unique<RangeCuda>(search, most, results);
}

void write_range_cuda(const RangeView& found, const RangeOnDevice& out, int device, const Resources& resources) {
  const DeviceGuard guard(device);
  const DeviceContext context(device, resources.options().stream);
  context.copy_values(out.offsets, found.offsets, found.queries + 1);
  context.copy_values(out.ids, found.ids, found.size());
  context.copy_values(out.distances, found.distances, found.size());
  context.synchronize();
}

}  // namespace kith
