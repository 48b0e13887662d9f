#include "core/divide.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/host_copy.hpp"
#include "cuda/pinned_stage.hpp"
#include "graph/search/build/link_places_cuda.hpp"
#include "graph/search/build/mend_places_cuda.hpp"
#include "graph/search/build/stage_times.hpp"
#include "graph/search/build/walk_build_gpu.hpp"
#include "graph/search/walk/walk_cuda.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace kith {
namespace {

constexpr std::string_view kPurpose = "the graph as a GPU builds it";
constexpr int64_t kSoughtTogether = int64_t{1} << 17;  // places that are walked to by one launch
constexpr int64_t kListsTogether = 4096;               // that are replaced by one launch
constexpr int64_t kEntriesPerCell = 32;                // beyond those of parts: what repairs may add, and more
constexpr int64_t kWidestSought = 64;                  // widest beam of such walks

// What walks towards all places need beside codes and edges.
struct SoughtLayout : WorkspaceLayout {
  SoughtLayout(int64_t places, int64_t cells, int64_t degree, int64_t stride)
      : together(std::min(places, kSoughtTogether)),
        centres(take<int8_t>(cells, stride)),
        centre_norms(take<uint32_t>(cells)),
        entry_offsets(take<uint32_t>(cells + 1)),
        entries(take<uint32_t>(places + kEntriesPerCell * cells)),
        offsets(take<float>(stride)),
        sought(take<uint32_t>(places)),
        near_cells(take<uint32_t>(together, kNearCells)),
        found(take<uint32_t>(together, kWidestSought)),
        found_count(take<uint32_t>(together)),
        lost(take<LostPlace>(together)),
        lost_count(take<uint32_t>(1)),
        bad_query(take<uint32_t>(1)),
        changed(take<uint32_t>(kListsTogether)),
        changed_lists(take<uint32_t>(kListsTogether, degree)) {}

  int64_t together;
  Slot<int8_t> centres;
  Slot<uint32_t> centre_norms, entry_offsets, entries;
  Slot<float> offsets;  // zeros
  Slot<uint32_t> sought, near_cells, found, found_count;
  Slot<LostPlace> lost;
  Slot<uint32_t> lost_count, bad_query, changed, changed_lists;
};

class WalkBuildCuda final : public WalkBuildGpu {
 public:
  WalkBuildCuda(const WalkRows& codes, int64_t degree, int64_t room, const Resources& given,
                const WalkArraysOnGpu& there)
      : guard_(given.device().index),
        context_(work_context(given.device().index, given)),
        resources_(given.with_stream(context_->stream())),
        degree_(degree),
        multiprocessors_(usable_gpu_when_idle(given.device()).multiprocessors),
        most_places_(codes.count() + room),
        codes_(most_places_ * codes.row_bytes(), given.device().index, resources_),
        edges_(most_places_ * degree * static_cast<int64_t>(sizeof(uint32_t)), given.device().index, resources_),
        edge_count_(codes.count() * degree) {
    if (there.there()) {
      context_->copy(codes_.data(), there.codes.data(), there.codes.bytes());
      context_->copy(edges_.data(), there.edges.data(), there.edges.bytes());
    } else {
      upload(codes.values, codes_.data());
    }
  }
  // Others may take the memory then.
  ~WalkBuildCuda() override {
    if (!context_->counts_only()) (void)cudaStreamSynchronize(context_->stream());
  }
  WalkBuildCuda(const WalkBuildCuda&) = delete;
  WalkBuildCuda& operator=(const WalkBuildCuda&) = delete;

  HostArray<uint32_t> link(const WalkRows& rows, int64_t candidates, const FindCandidates& find,
                           const Resources& host) override {
    StageTimes times;
    const int64_t places = rows.count();
    HostArray<uint32_t> edges(places * degree_, "the graph's edges", host);
    const bool by_codes = rows.kind == WalkKind::squares;
    DeviceArray<std::byte> values;
    if (!by_codes) {
      values = DeviceArray<std::byte>(places * rows.row_bytes(), kPurpose, context_, resources_);
      upload(rows.values, values.data());
    }
    const MatrixView& shape = rows.values;
    const void* const data = by_codes ? static_cast<const void*>(code_data()) : values.data();
    const MatrixView there(data, shape.dtype(), {places, shape.cols(), shape.row_stride()},
                           MemorySpace::cuda(context_->device()));
    const DeviceArray<int64_t> ids(places * candidates, kPurpose, context_, resources_);
    {
      const DeviceArray<float> distances(places * candidates, kPurpose, context_, resources_);
      const NeighborsView out{ids.data(), distances.data(), places, candidates, there.space()};
      find(there, out, resources_);
    }
    const LinkLayoutCuda layout(places, places, degree_);
    const DeviceArray<std::byte> memory(layout.bytes, kPurpose, context_, resources_);
    if (context_->counts_only()) return edges;
    context_->synchronize();
    times.done("candidates");
    LinkTaskCuda task;
    if (by_codes) task.codes = code_data();
    task.stride = rows.row_bytes();
    task.rows = {device_rows(there), shape.cols(), rows.key};
    task.places = places;
    task.candidates = ids.data();
    task.candidate_count = candidates;
    task.degree = degree_;
    task.ratio = prune_ratio(degree_, keys_are_squares(rows));
    task.edges = edge_data();
    launch_link_places(task, layout, memory.data(), context_->stream());
    context_->synchronize();
    times.done("links");
    copy_to_host_staged(edges.data(), edges_.data(), edges.bytes(), *context_, host);
    times.done("copy");
    times.tell("lists of a graph", resources_);
    return edges;
  }

  void take_edges(const uint32_t* edges) override {
    const int64_t bytes = edge_count_ * static_cast<int64_t>(sizeof(uint32_t));
    upload({edges, DType::u8, {1, bytes, bytes}}, edges_.data());
  }

  void take_more(const WalkView& graph, const std::byte* codes, int64_t count) override {
    const int64_t bytes = graph.rows.row_bytes();
    upload({codes, DType::u8, {count, bytes, bytes}},
           codes_.data() + graph.rows.count() * bytes);
  }

  HostArray<uint32_t> near_more(const WalkView& graph, int64_t count, const WalkParams& params,
                                const Resources& host) override {
    HostArray<uint32_t> near(count * params.beam, "places near new ones", host);
    const HostArray<uint32_t> counts(count, "places near new ones", host);
    if (!layout_) begin_search(graph, host);
    if (context_->counts_only()) return near;
    take_entries(graph);
    for (int64_t first = 0; first < count; first += layout_->together) {
      resources_.check_cancelled();
      const int64_t some = std::min(layout_->together, count - first);
      WalkTaskCuda task = walk_task(graph, 0, some);
      task.queries.list = nullptr;
      task.queries.data = code_data() + (graph.rows.count() + first) * task.stride;
      task.beam = static_cast<int>(params.beam);
      task.width = static_cast<int>(params.width);
      task.most = params.beam;
      launch_walks(task, {}, walk_form(task, multiprocessors_), context_->stream());
      context_->copy_values(near.data() + first * params.beam, at(layout_->found), some * params.beam);
      context_->copy_values(counts.data() + first, at(layout_->found_count), some);
      context_->synchronize();
    }
    for (int64_t i = 0; i < count; ++i) {
      std::fill(near.data() + i * params.beam + counts[i], near.data() + (i + 1) * params.beam, kNoWalkPlace);
    }
    return near;
  }

  ListsOfPlaces link_more(int64_t places, int64_t count, const HostArray<int64_t>& candidates,
                          const Resources& host) override {
    StageTimes times;
    const DeviceArray<int64_t> ids(candidates.size(), kPurpose, context_, resources_);
    const LinkLayoutCuda layout(places, count, degree_);
    const DeviceArray<std::byte> memory(layout.bytes, kPurpose, context_, resources_);
    const DeviceArray<uint32_t> changed(count * (degree_ + 1) + 1, kPurpose, context_, resources_);
    if (context_->counts_only()) return {};
    upload({candidates.data(), DType::u8, {1, candidates.bytes(), candidates.bytes()}},
           reinterpret_cast<std::byte*>(ids.data()));
    times.done("candidates there");
    LinkTaskCuda task;
    task.codes = code_data();
    task.stride = codes_.bytes() / most_places_;
    task.places = places;
    task.first = places - count;
    task.candidates = ids.data();
    task.candidate_count = candidates.size() / count;
    task.degree = degree_;
    task.ratio = prune_ratio(degree_, true);
    task.edges = edge_data();
    launch_link_more(task, layout, memory.data(), context_->stream());
    uint32_t* const counter = changed.data() + count * (degree_ + 1);
    context_->fill(counter, 0, 1);
    launch_changed_places(task, layout, memory.data(), changed.data(), counter, context_->stream());
    uint32_t some = 0;
    context_->copy_values(&some, counter, 1);
    context_->synchronize();
    times.done("links");
    ListsOfPlaces out{HostArray<uint32_t>(some, "the graph's edges", host),
                      HostArray<uint32_t>(int64_t{some} * degree_, "the graph's edges", host)};
    const DeviceArray<uint32_t> lists(out.lists.size(), kPurpose, context_, resources_);
    launch_gather_edges(task, changed.data(), some, lists.data(), context_->stream());
    copy_to_host_staged(out.places.data(), changed.data(), out.places.bytes(), *context_, host);
    copy_to_host_staged(out.lists.data(), lists.data(), out.lists.bytes(), *context_, host);
    times.done("copy");
    times.tell("lists that new rows change", resources_);
    return out;
  }

  WalkArraysOnGpu give(int64_t places) override {
    context_->synchronize();
    return {context_->device(), codes_.first(places * (codes_.bytes() / most_places_)),
            edges_.first(places * degree_ * static_cast<int64_t>(sizeof(uint32_t)))};
  }

  HostArray<uint32_t> parts(const WalkView& graph, const Resources& host) override {
    const int64_t places = graph.rows.count();
    const DeviceArray<uint32_t> parts(places, kPurpose, context_, resources_);
    launch_connected_parts(edge_data(), places, degree_, parts.data(), context_->stream());
    return copied_to_host(parts.data(), places, "the connected parts of a graph", *context_, host);
  }

  std::vector<LostPlace> lost_of(const WalkView& graph, const std::vector<uint32_t>& sought,
                                 const Resources& host) override {
    std::vector<LostPlace> lost;
    if (!layout_) begin_search(graph, host);
    if (context_->counts_only()) return lost;
    const auto total = static_cast<int64_t>(sought.size());
    take_entries(graph);
    context_->copy_values(at(layout_->sought), sought.data(), total);
    for (int64_t first = 0; first < total; first += layout_->together) {
      resources_.check_cancelled();
      const int64_t count = std::min(layout_->together, total - first);
      context_->fill(at(layout_->lost_count), 0, 1);
      const WalkTaskCuda task = walk_task(graph, first, count);
      launch_walks(task, {}, walk_form(task, multiprocessors_), context_->stream());
      launch_lost_places(task, at(layout_->lost), at(layout_->lost_count), context_->stream());
      uint32_t some = 0;
      context_->copy_values(&some, at(layout_->lost_count), 1);
      context_->synchronize();
      const size_t before = lost.size();
      lost.resize(before + some);
      context_->copy_values(lost.data() + before, at(layout_->lost), int64_t{some});
      context_->synchronize();
    }
    std::sort(lost.begin(), lost.end(), [](const LostPlace& a, const LostPlace& b) { return a.place < b.place; });
    return lost;
  }

  void lists_changed(const WalkView& graph, const std::vector<uint32_t>& places) override {
    const auto total = static_cast<int64_t>(places.size());
    std::vector<uint32_t> lists;
    for (int64_t first = 0; first < total; first += kListsTogether) {
      const int64_t count = std::min(kListsTogether, total - first);
      const uint32_t* const some = places.data() + first;
      lists.clear();
      for (int64_t i = 0; i < count; ++i) {
        const uint32_t* const list = graph.edges + some[i] * degree_;
        lists.insert(lists.end(), list, list + degree_);
      }
      context_->copy_values(at(layout_->changed), some, count);
      context_->copy_values(at(layout_->changed_lists), lists.data(), count * degree_);
      launch_replace_lists(at(layout_->changed), at(layout_->changed_lists), count, degree_, edge_data(),
                           context_->stream());
      context_->synchronize();
    }
  }

 private:
  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(search_memory_.data());
  }

  int8_t* code_data() const { return reinterpret_cast<int8_t*>(codes_.data()); }
  uint32_t* edge_data() const { return reinterpret_cast<uint32_t*>(edges_.data()); }

  // Rows with what lies between them.
  void upload(const MatrixView& rows, std::byte* to) const {
    if (context_->counts_only()) return;
    const int64_t bytes = rows.rows() * rows.row_stride() * size_of(rows.dtype());
    copy_to_device({rows.data(), DType::u8, {1, bytes, bytes}}, to, context_->device(), resources_.with_progress({}));
  }

  void take_entries(const WalkView& graph) const {
    const int64_t cells = graph.centres.count();
    context_->copy_values(at(layout_->entry_offsets), graph.entry_offsets, cells + 1);
    context_->copy_values(at(layout_->entries), graph.entries, graph.entry_offsets[cells]);
  }

  // Memory for walks, with what stays the same in all rounds.
  void begin_search(const WalkView& graph, const Resources& host) {
    const int64_t cells = graph.centres.count();
    const int64_t stride = graph.rows.row_bytes();
    layout_.emplace(most_places_, cells, degree_, stride);
    search_memory_ = DeviceArray<std::byte>(layout_->bytes, kPurpose, context_, resources_);
    const HostArray<uint32_t> norms(cells, kPurpose, host);
    if (context_->counts_only()) return;
    for (int64_t cell = 0; cell < cells; ++cell) norms[cell] = squared_code_norm(graph.centres, cell);
    context_->copy_values(at(layout_->centres), static_cast<const int8_t*>(graph.centres.values.data()),
                          cells * stride);
    context_->copy_values(at(layout_->centre_norms), norms.data(), cells);
    context_->fill(at(layout_->offsets), 0, stride);
    context_->fill(at(layout_->bad_query), 0xFF, 1);
    context_->synchronize();
  }

  // Walks towards some of the sought places: their codes are the queries, as they are.
  WalkTaskCuda walk_task(const WalkView& graph, int64_t first, int64_t count) const {
    WalkTaskCuda task;
    task.kind = graph.rows.kind;
    task.codes = code_data();
    task.tail = code_data();
    task.centres = at(layout_->centres);
    task.places = graph.rows.count();
    task.stride = graph.rows.row_bytes();
    task.edges = edge_data();
    task.degree = static_cast<int>(degree_);
    task.cells = static_cast<int>(graph.centres.count());
    task.entry_offsets = at(layout_->entry_offsets);
    task.entries = at(layout_->entries);
    task.centre_norms = at(layout_->centre_norms);
    task.offsets = at(layout_->offsets);
    task.widest = 1024;  // above all codes: none is moved
    task.plain = true;
    task.queries = {code_data(), DType::i8, task.stride, count};
    task.queries.list = at(layout_->sought) + first;
    task.cols = graph.rows.values.cols();
    task.beam = static_cast<int>(kSelfWalk.beam);
    task.width = static_cast<int>(kSelfWalk.width);
    if (count >= kFewestRanked && task.stride <= kMostRankedStride) task.near_cells = at(layout_->near_cells);
    task.most = kSelfWalk.beam;
    task.found = at(layout_->found);
    task.found_count = at(layout_->found_count);
    task.bad_query = at(layout_->bad_query);
    return task;
  }

  const DeviceGuard guard_;
  const std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const int64_t degree_;
  const int multiprocessors_;
  const int64_t most_places_;
  const GpuBytes codes_;
  const GpuBytes edges_;
  const int64_t edge_count_;  // of the places that were there first
  std::optional<SoughtLayout> layout_;
  DeviceArray<std::byte> search_memory_;
};

}  // namespace

std::unique_ptr<WalkBuildGpu> make_walk_build_gpu(const WalkRows& codes, int64_t degree, const Resources& resources,
                                                  int64_t room, const WalkArraysOnGpu& there) {
  return std::make_unique<WalkBuildCuda>(codes, degree, room, resources, there);
}

}  // namespace kith
