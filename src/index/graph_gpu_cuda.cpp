// The search of a graph on a GPU, batch by batch: queries come with the launch, by a pinned page or by a copy; two
// kernels; results go to the pinned page, or by a copy. Few queries are never waited for but once.
#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "cuda/pinned_page.hpp"
#include "cuda/row_upload.hpp"
#include "cuda/workspace_layout.hpp"
#include "graph/search/walk/walk_cuda.hpp"
#include "index/graph_compare_cuda.hpp"
#include "index/graph_gpu.hpp"
#include "index/refine_gpu_cuda.hpp"
#include "rows/finite_check.hpp"

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr int64_t kMostTogether = int64_t{1} << 16;  // queries
constexpr int64_t kBatchShare = 8;                   // of the memory left: what a batch takes
constexpr int64_t kSmallBatch = int64_t{16} << 20;   // bytes that a device has, whatever else it does
constexpr uint32_t kNoBadQuery = 0xFFFFFFFFU;

struct GraphBatchShape {
  int64_t row_bytes = 0;  // of a query that comes to the device; 0: they lie there
  int64_t found = 0;      // places of a walk that a second look follows
  int64_t known = 0;      // 1: their keys are those of the results
  int64_t k = 0;
  int64_t results = 0;  // 1: they go to the host by way of the device
  int64_t kept_words = 0;
  int64_t ranked = 0;  // cells of a query that a kernel of its own ranks
  int64_t hidden = 0;  // places of a query that it does not see
};

struct GraphBatchLayout : WorkspaceLayout {
  GraphBatchLayout(const GraphBatchShape& shape, int64_t batch)
      : kept(take<uint64_t>(shape.kept_words)),
        queries(take<std::byte>(batch, shape.row_bytes)),
        near_cells(take<uint32_t>(batch, shape.ranked)),
        hidden(take<uint32_t>(batch, shape.hidden)),
        found(take<uint32_t>(batch, shape.found)),
        found_keys(take<uint32_t>(batch, shape.known * shape.found)),
        found_count(take<uint32_t>(batch, shape.found > 0 ? 1 : 0)),
        failed(take<uint8_t>(batch)),
        ids(take<int64_t>(batch, shape.results * shape.k)),
        distances(take<float>(batch, shape.results * shape.k)) {}

  Slot<uint64_t> kept;  // bits of the filter
  Slot<std::byte> queries;
  Slot<uint32_t> near_cells;
  Slot<uint32_t> hidden;
  Slot<uint32_t> found;
  Slot<uint32_t> found_keys;
  Slot<uint32_t> found_count;
  Slot<uint8_t> failed;
  Slot<int64_t> ids;
  Slot<float> distances;
};

// What comes to the host by the page: the report, then ids, distances and who has failed.
struct PageResults {
  static constexpr int64_t kReport = 256;
  static int64_t bytes(int64_t queries, int64_t k) { return kReport + queries * (k * 12 + 1) + 16; }

  PageResults(std::byte* page, int64_t queries, int64_t k)
      : report(reinterpret_cast<uint32_t*>(page)),
        ids(reinterpret_cast<int64_t*>(page + kReport)),
        distances(reinterpret_cast<float*>(ids + queries * k)),
        failed(reinterpret_cast<uint8_t*>(distances + queries * k)) {}

  uint32_t* report;
  int64_t* ids;
  float* distances;
  uint8_t* failed;
};

class GraphSearcherCuda {
 public:
  GraphSearcherCuda(int device, const GpuGraphSearch& search, const MatrixView& queries, const NeighborsView& out,
                    const Resources& given)
      : guard_(device),
        context_(std::make_shared<const DeviceContext>(device, given.options().stream)),
        resources_(given.with_device(Device::cuda(device)).with_stream(context_->stream())),
        search_(search),
        queries_(queries),
        out_(out),
        multiprocessors_(usable_gpu_when_idle(Device::cuda(device)).multiprocessors),
        by_page_(out.space.host_readable() && result_bytes() <= PinnedPage::kWide * PinnedPage::kDownBytes),
        shape_(shape_of()),
        together_(together_of(device)),
        layout_(shape_, together_),
        in_room_(!context_->counts_only() && layout_.bytes <= PinnedPage::kRoomBytes),
        memory_(in_room_ ? 0 : layout_.bytes, "the search of a graph", context_, resources_),
        failed_(by_page_ ? 0 : together_, "queries that are searched exactly", resources_),
        upload_(goes_pinned(), resources_) {}

  QueriesLeft run() {
    QueriesLeft left;
    if (context_->counts_only()) return left;
    PinnedPage page(context_->device(), wants_wide_page());
    base_ = in_room_ ? page.room() : memory_.data();
    if (search_.kept != nullptr) context_->copy_values(at(layout_.kept), search_.kept, shape_.kept_words);
    ProgressMeter meter("search", queries_.rows(), resources_);
    for (int64_t first = 0; first < queries_.rows(); first += together_) {
      resources_.check_cancelled();
      const int64_t count = std::min(together_, queries_.rows() - first);
      page.use(context_->stream());
      search_batch(first, count, page);
      first + count < queries_.rows() ? context_->synchronize() : context_->finish();
      page.finished();
      deliver(first, count, page, left);
      meter.add(count);
    }
    meter.finish();
    return left;
  }

 private:
  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(base_);
  }

  int64_t result_bytes() const { return PageResults::bytes(queries_.rows(), out_.k); }
  bool wants_wide_page() const {
    const int64_t sent = together_ * shape_.row_bytes;
    return (by_page_ && result_bytes() > PinnedPage::kDownBytes) ||
           (sent > PinnedPage::kUpBytes && sent <= PinnedPage::kWide * PinnedPage::kUpBytes);
  }
  bool goes_pinned() const {
    return shape_.row_bytes > 0 && wants_pinned(queries_.space(), together_ * shape_.row_bytes, resources_);
  }
  bool queries_come() const { return queries_.space().host_readable(); }

  // Places that a walk is asked for.
  int64_t most_places() const {
    const GraphPlan& plan = search_.plan;
    return std::min(plan.walk.kept > 0 ? plan.walk.kept : plan.walk.beam, plan.candidates);
  }
  bool keys_are_known() const {
    return search_.rows.codec == nullptr && search_.graph.graph().coder.keys_are_exact(queries_.dtype());
  }
  // Whether walks leave nothing to a second look. No query is refused then: bytes are finite.
  bool writes_results() const {
    return keys_are_known() && search_.kept == nullptr && most_places() <= kMostWalkResults;
  }

  GraphBatchShape shape_of() const {
    GraphBatchShape shape;
    shape.row_bytes = queries_come() ? queries_.cols() * size_of(queries_.dtype()) : 0;
    shape.found = writes_results() ? 0 : most_places();
    shape.known = keys_are_known() ? 1 : 0;
    shape.k = out_.k;
    shape.results = out_.space.host_readable() && !by_page_ ? 1 : 0;
    shape.kept_words = search_.kept == nullptr ? 0 : KeptRows::words_for(search_.stored);
    const bool ranks =
        queries_.rows() >= kFewestRanked && search_.graph.graph().coder.code_columns() <= kMostRankedStride;
    shape.ranked = ranks ? ranked_words(rank_slices(queries_.rows())) : 0;
    shape.hidden = search_.hidden == nullptr ? 0 : 1;
    return shape;
  }

  // All at once, where a share of the memory left has room for them.
  int64_t together_of(int device) const {
    constexpr int64_t kSome = 256;
    if (context_->counts_only()) return 1;
    const int64_t most = std::clamp<int64_t>(queries_.rows(), 1, kMostTogether);
    if (most <= kSome) return most;
    // Asking the device how much memory is free takes a third of the time of such a search.
    const int64_t allowed = resources_.device_memory(device)->available() / kBatchShare;
    if (GraphBatchLayout(shape_, most).bytes <= std::min(kSmallBatch, allowed)) return most;
    const int64_t each = divide_up(GraphBatchLayout(shape_, kSome).bytes, kSome);
    return std::clamp<int64_t>(device_memory_left(device, resources_) / kBatchShare / each, 1, most);
  }

  DeviceRowsView bring(int64_t first, int64_t count, const PinnedPage& page) {
    const MatrixView some = queries_.slice(first, count);
    DeviceRowsView view = device_rows(some);
    inline_.bytes = 0;
    if (!queries_come()) return view;
    view.data = at(layout_.queries);
    view.stride = some.cols();
    const int64_t bytes = count * shape_.row_bytes;
    const bool by_launch = bytes <= InlineQueries::kMostBytes;
    if (by_launch || bytes <= page.up_bytes()) {
      std::byte* const to = by_launch ? inline_.values : page.up();
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(to + i * shape_.row_bytes, some.row(i), static_cast<size_t>(shape_.row_bytes));
      }
      if (by_launch) {
        inline_.bytes = bytes;
      } else if (bytes <= PinnedPage::kUpBytes) {
        view.data = page.up();  // read once by each kernel
      } else {
        context_->copy_values(at(layout_.queries), page.up(), bytes);
      }
      return view;
    }
    const Resources quiet = resources_.with_progress({});
    ProgressMeter meter("copy", count, quiet);
    upload_.copy(some, at(layout_.queries), context_->stream(), meter);
    return view;
  }

  void search_batch(int64_t first, int64_t count, PinnedPage& page) {
    const DeviceRowsView queries = bring(first, count, page);
    uint32_t* const bad_query = &page.words()->bad_row;
    if (search_.hidden != nullptr) context_->copy_values(at(layout_.hidden), search_.hidden + first, count);
    const GraphCompareTask then = compare_task(queries, first, bad_query, page);
    WalkTaskCuda task = walk_task(queries, bad_query);
    if (writes_results()) task.results = results_of(then);
    launch_walks(task, inline_, walk_form(task, multiprocessors_), context_->stream());
    if (!writes_results()) launch_graph_compare(then, inline_, context_->stream());
    if (shape_.results == 0 && by_page_) return;
    context_->copy_values(failed_.data(), at(layout_.failed), count);
    if (shape_.results == 0) return;
    context_->copy_values(out_.ids + first * out_.k, at(layout_.ids), count * out_.k);
    context_->copy_values(out_.distances + first * out_.k, at(layout_.distances), count * out_.k);
  }

  WalkTaskCuda walk_task(const DeviceRowsView& queries, uint32_t* bad_query) const {
    WalkTaskCuda task = search_.graph.task();
    task.tail = search_.rows.tail.as<int8_t>();
    task.tail_places = search_.rows.tail.bytes() / search_.graph.graph().coder.place_bytes();
    task.near_cells = shape_.ranked > 0 ? at(layout_.near_cells) : nullptr;
    task.rank_slices = rank_slices(queries_.rows());
    task.hidden = search_.hidden == nullptr ? nullptr : at(layout_.hidden);
    task.queries = queries;
    task.beam = static_cast<int>(search_.plan.walk.beam);
    task.width = static_cast<int>(search_.plan.walk.width);
    task.kept = static_cast<int>(search_.plan.walk.kept);
    task.kept_bits = search_.kept == nullptr ? nullptr : at(layout_.kept);
    task.plain = search_.graph.graph().coder.keys_are_exact(queries_.dtype());
    task.most = most_places();
    task.found = at(layout_.found);
    if (shape_.known > 0) task.found_keys = at(layout_.found_keys);
    task.found_count = at(layout_.found_count);
    task.bad_query = bad_query;
    return task;
  }

  // What the second look would write.
  static WalkResults results_of(const GraphCompareTask& then) {
    WalkResults results;
    results.ids = then.ids;
    results.distances = then.distances;
    results.failed = then.failed;
    results.after_few = static_cast<uint8_t>(AfterWalk::wider);
    results.k = then.k;
    results.candidates = then.candidates;
    results.fewest_rows = then.fewest_rows;
    results.kind = then.kind;
    results.exit = then.exit;
    return results;
  }

  GraphCompareTask compare_task(const DeviceRowsView& queries, int64_t first, uint32_t* bad_query,
                                const PinnedPage& page) const {
    GraphCompareTask task;
    task.codec = search_.rows.codec == nullptr ? CodecView{search_.rows.format} : codec_view(*search_.rows.codec);
    task.code_bytes = search_.rows.format.bytes();
    task.kind = key_kind(search_.metric);
    task.vectors = search_.rows.vectors.as<uint8_t>();
    task.rows = search_.graph.rows();
    task.kept_bits = search_.kept == nullptr ? nullptr : at(layout_.kept);
    task.queries = queries;
    task.found = at(layout_.found);
    if (shape_.known > 0) task.found_keys = at(layout_.found_keys);
    task.found_count = at(layout_.found_count);
    task.most = most_places();
    task.fewest = search_.plan.fewest_kept;
    task.candidates = search_.plan.candidates;
    task.k = out_.k;
    task.fewest_rows = std::min(out_.k, search_.kept_rows);
    task.exit = ResultExit(search_.metric);
    const PageResults paged(page.down(), queries.count, out_.k);
    task.report = paged.report;
    task.bad_query = bad_query;
    if (by_page_) {
      task.ids = paged.ids;
      task.distances = paged.distances;
      task.failed = paged.failed;
      return task;
    }
    task.failed = at(layout_.failed);
    task.ids = shape_.results > 0 ? at(layout_.ids) : out_.ids + first * out_.k;
    task.distances = shape_.results > 0 ? at(layout_.distances) : out_.distances + first * out_.k;
    return task;
  }

  // After a wait.
  void deliver(int64_t first, int64_t count, const PinnedPage& page, QueriesLeft& left) const {
    const PageResults paged(page.down(), count, out_.k);
    const uint32_t bad = writes_results() ? kNoBadQuery : *paged.report;
    if (bad != kNoBadQuery && search_.check_finite) throw_not_finite("query", first + int64_t{bad});
    const uint8_t* const who = by_page_ ? paged.failed : failed_.data();
    for (int64_t i = 0; i < count; ++i) left.add(first + i, static_cast<AfterWalk>(who[i]));
    if (!by_page_) return;
    std::copy_n(paged.ids, count * out_.k, out_.ids + first * out_.k);
    std::copy_n(paged.distances, count * out_.k, out_.distances + first * out_.k);
  }

  const DeviceGuard guard_;
  const std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const GpuGraphSearch& search_;
  const MatrixView queries_;
  const NeighborsView out_;
  const int multiprocessors_;
  const bool by_page_;  // results go to the host by the pinned page
  const GraphBatchShape shape_;
  const int64_t together_;
  const GraphBatchLayout layout_;
  const bool in_room_;  // what the batch needs on the device has room in the page's
  const DeviceBuffer memory_;
  std::byte* base_ = nullptr;  // of the layout
  const HostArray<uint8_t> failed_;
  RowUpload upload_;
  InlineQueries inline_;
};

}  // namespace

QueriesLeft search_graph_on_gpu(int device, const GpuGraphSearch& search, const MatrixView& queries,
                                const NeighborsView& out, const Resources& resources) {
  if (queries.rows() == 0) return {};
  return GraphSearcherCuda(device, search, queries, out, resources).run();
}

}  // namespace kith
