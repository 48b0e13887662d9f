// "Graph32": a graph over vectors that another kind, the store, holds as they are or as scalar codes.
//
// An add passes its rows to the store. Then completed() encodes them for walks, which compare all of these rows: the
// tail. Once the tail has more than one row per kTailShare rows of the graph, it is linked into a copy of the graph, or
// if there are too many rows for that, the graph is rebuilt. So the graph depends on the rows and on how they were
// added, never on threads or memory. It is also rebuilt if the values of new rows are out of the range of its codes.
// Compaction drops the places of removed rows from a copy of the graph (compact_walk_graph.hpp). Below
// kFewestWalkedRows rows there is no graph.
#include <kith/error.hpp>

#include "core/within_limits.hpp"
#include "graph/search/build/build_walk_graph.hpp"
#include "graph/search/build/compact_walk_graph.hpp"
#include "graph/search/build/extend_walk_graph.hpp"
#include "graph/search/build/stage_times.hpp"
#include "index/factory.hpp"
#include "index/graph_state.hpp"
#include "index/index_parts_check.hpp"
#include "index/measure_beams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kTailShare = 2048;     // rows of the graph per row of the tail
constexpr int64_t kShortTail = 256;      // a tail of up to this many rows is not linked
constexpr int64_t kLostWarning = 10000;  // warn about more than one lost row per this many
constexpr int64_t kClippedOf = 400;      // rebuild if more than one value of this many is clipped

// The largest tail that is left unlinked.
int64_t most_unlinked(const WalkGraph& graph) { return std::max(kShortTail, graph.rows() / kTailShare); }

const GraphState* walked(const IndexState* state) { return static_cast<const GraphState*>(state); }
const IndexState* store_of(const GraphState* state) { return state == nullptr ? nullptr : state->store().get(); }

template <typename T>
HostArray<T> taken(PartArray<T>& array, const Resources& resources) {
  return std::move(array).take("the graph", resources);
}

// The graph from the parts of a file.
std::shared_ptr<const WalkGraph> restored_graph(GraphParts& parts, const WalkCoder& coder, const Resources& resources) {
  PlaceOrder order(taken(parts.place_offsets, resources), taken(parts.place_rows, resources), parts.places);
  WalkLists lists(taken(parts.edges, resources), parts.places, parts.degree);
  HostArray<std::byte> centres = taken(parts.centres, resources);
  auto packed = packed_centres(coder.centres_of(centres.data(), parts.cells), resources);
  return std::make_shared<const WalkGraph>(
      WalkGraph{coder, parts.degree, std::move(order), taken(parts.codes, resources), std::move(lists), parts.cells,
                std::move(centres), taken(parts.entry_offsets, resources), taken(parts.entries, resources),
                WalkGraphCounts{parts.clipped, parts.connected, parts.lost}, std::move(packed)});
}

class GraphKind final : public IndexKind {
 public:
  GraphKind(const FactorySpec& spec, std::shared_ptr<const IndexKind> store, const IndexParams& params)
      : degree_(spec.degree),
        bits_(spec.four_bits ? WalkBits::four : WalkBits::eight),
        store_(std::move(store)),
        coded_(spec.code.has_value()),
        params_(params) {}

  SearchUse search_use() const override { return {.walks = true}; }
  bool needs_training() const override { return store_->needs_training(); }
  SharedState trained(RowSource& rows, const Resources& resources) const override {
    refuse_elsewhere(rows.info());
    return made(store_->trained(rows, resources), {}, resources);
  }
  Footprint training_footprint(const RowsInfo& rows, const Resources& resources) const override {
    return store_->training_footprint(rows, resources);
  }

  SharedState added(const IndexState* before, const MatrixView& rows, Ownership,
                    const Resources& resources) const override {
    refuse_elsewhere(RowsInfo(rows));
    const GraphState* const state = walked(before);
    return made(store_->added(store_of(state), rows, Ownership::copy, resources), front_of(state), resources);
  }
  Footprint add_footprint(const IndexState* before, const RowsInfo& rows, const Resources& resources) const override {
    refuse_elsewhere(rows);
    return store_->add_footprint(store_of(walked(before)), rows, resources);
  }

  SharedState completed(const SharedState& state, const Resources& resources) const override {
    if (walked(state.get())->front().to_compact != nullptr)
      return completed(graph_compacted(state, resources), resources);
    const GraphState& whole = *walked(state.get());
    const int64_t rows = whole.content().rows;
    if (rows < kFewestWalkedRows || whole.front().rows() == rows) return state;
    const WalkGraph* const graph = whole.front().graph.get();
    if (graph == nullptr) return with_front(whole, built(whole, resources));
    const int64_t behind = rows - graph->rows();
    const bool links = behind > most_unlinked(*graph);
    if (links && !can_extend(*graph, behind)) return with_front(whole, built(whole, resources));
    GraphFront front = with_tail(whole, resources);
    if (links && clips_much(*graph, front.tail_clipped, rows)) return built_anew(whole, resources);
    if (links) {
      WalkArraysOnGpu arrays = arrays_on_gpu(front, resources);
      front.graph =
          extend_walk_graph(*graph, front.tail.data(), behind, front.tail_clipped, params_.seed, resources, &arrays);
      front.tail = {};
      front.tail_clipped = 0;
      front = std::move(front).with_own_copies(whole.shared_vectors());
      keep_on_gpu(front, arrays, resources);
    }
    return with_front(whole, std::move(front));
  }
  SharedState completed_from(const NeighborsView& start, const SharedState& state,
                             const Resources& resources) const override {
    const GraphState& whole = *walked(state.get());
    if (whole.content().rows < kFewestWalkedRows) return state;
    if (const int64_t wanted = wanted_candidates(degree_); start.k < wanted) {
      resources.log(LogLevel::warning,
                    fmt::format("start has {} neighbours of each vector, where a build of {} looks for {}: searches "
                                "may find less; info() has the recall of beams",
                                start.k, name(), wanted));
    }
    return with_front(whole, built(whole, resources, start));
  }
  bool takes_start() const override { return true; }
  Footprint completion_footprint(const IndexState* before, const RowsInfo& given,
                                 const Resources& resources) const override {
    if (given.rows < kFewestWalkedRows) return {};
    const WalkGraph* const graph = before == nullptr ? nullptr : walked(before)->front().graph.get();
    const int64_t behind = graph == nullptr ? 0 : given.rows - graph->rows();
    const bool links = graph != nullptr && behind > most_unlinked(*graph);
    if (graph == nullptr || (links && !can_extend(*graph, behind))) return build_footprint(given, resources);
    const Footprint tail = tail_footprint(*graph, behind, given, resources);
    return links ? tail.beside(extend_footprint(*graph, behind, resources)) : tail;
  }

  SharedState compacted(const IndexState& before, const KeptRows& kept, const Resources& resources) const override {
    const GraphState& state = *walked(&before);
    GraphFront front;
    if (const auto& graph = state.front().graph; graph != nullptr) {
      HostArray<uint64_t> bits(KeptRows::words_for(graph->rows()), "the rows of a graph that stay", resources);
      std::copy_n(kept.bits(), bits.size(), bits.begin());
      int64_t stay = 0;
      for (int64_t row = 0; row < graph->rows(); ++row) stay += keeps(bits.data(), row) ? 1 : 0;
      if (stay >= kFewestWalkedRows && can_compact(*graph, graph->rows() - stay)) {
        front.table = state.front().table;
        front.to_compact = std::make_shared<const GraphToCompact>(GraphToCompact{graph, std::move(bits)});
      }
    }
    return made(store_->compacted(*state.store(), kept, resources), std::move(front), resources);
  }
  // The graph is compacted, or rebuilt if too many rows are dropped. All dropped rows may belong to the graph.
  Footprint compaction_footprint(const IndexState& before, int64_t dropped, const Resources& resources) const override {
    const GraphState& state = *walked(&before);
    if (state.content().rows < kFewestWalkedRows) return {};
    const WalkGraph* const graph = state.front().graph.get();
    if (graph == nullptr || graph->rows() - dropped < kFewestWalkedRows || !can_compact(*graph, dropped)) {
      return build_footprint(info_of(state), resources);
    }
    // The tail is encoded again, and linked if it is too long for the smaller graph.
    const int64_t behind = state.front().tail_rows();
    const Footprint less = compact_footprint(*graph, resources);
    return behind == 0 ? less
                       : less.beside(tail_footprint(*graph, behind, info_of(state), resources))
                             .beside(extend_footprint(*graph, behind, resources));
  }

  SharedState merged(const IndexState* before, const IndexState& other, const Resources& resources) const override {
    const auto* const more = dynamic_cast<const GraphState*>(&other);
    if (more == nullptr) throw_not_alike("the other index has no graph");
    const GraphState* const state = walked(before);
    return made(store_->merged(store_of(state), *more->store(), resources), front_of(state), resources);
  }
  bool merges_in_place() const override { return store_->merges_in_place(); }

  SharedState restored(IndexParts& parts, const Resources& resources) const override {
    SharedState store = store_->restored(parts, resources);
    if (!parts.graph) return made(std::move(store), {}, resources);
    GraphParts& own = *parts.graph;
    if (own.rows < kFewestWalkedRows) {
      throw PartsProblem(
          "about", fmt::format("a graph of {} rows; Kith makes none of fewer than {}", own.rows, kFewestWalkedRows));
    }
    const auto vectors = std::make_shared<const GraphVectors>(*store, resources);
    const WalkCoder coder = WalkCoder::from_scale(
        {params_.metric, vectors->dtype(), store->content().cols, static_cast<WalkBits>(own.bits)}, own.scale);
    std::vector<BeamRecall> measured;
    for (size_t i = 0; i + 1 < own.table.size(); i += 2) {
      measured.push_back({static_cast<int64_t>(own.table[i]), static_cast<double>(own.table[i + 1])});
    }
    GraphFront front;
    front.graph = restored_graph(own, coder, resources);
    front.table = std::make_shared<const BeamTable>(std::move(measured));
    const GraphState before(std::move(store), vectors, front, params_, degree_);
    if (front.rows() < before.content().rows) front = with_tail(before, resources);
    if (front.table->empty()) {  // a graph from another library's file
      const GraphState unmeasured(before.store(), vectors, front, params_, degree_);
      front.table = std::make_shared<const BeamTable>(measure_beams(unmeasured, params_.seed, resources));
    }
    return with_front(before, std::move(front));
  }

 private:
  WalkGraphParams walk_graph_params() const {
    return {.metric = params_.metric, .degree = degree_, .seed = params_.seed, .bits = bits_};
  }
  std::string name() const { return fmt::format("Graph{}{}", degree_, bits_ == WalkBits::four ? "x4" : ""); }

  // The rows from which a graph is built; codes are decoded.
  RowsInfo built_of(const RowsInfo& given) const { return {given.rows, given.cols, coded_ ? DType::f32 : given.dtype}; }
  static RowsInfo info_of(const GraphState& state) {
    return {state.content().rows, state.content().cols, state.content().dtype};
  }
  // Includes a contiguous copy of vectors in several segments.
  Footprint build_footprint(const RowsInfo& given, const Resources& resources) const {
    const RowsInfo rows = built_of(given);
    return footprint_of_call(resources, [&](const Resources& used) {
      const MatrixBuffer joined(rows.dtype, rows.rows, rows.cols, "the vectors of a graph", used);
      const auto graph = build_walk_graph(rows.counted_view(), walk_graph_params(), used);
    });
  }

  // The codes of a tail of `behind` rows.
  Footprint tail_footprint(const WalkGraph& graph, int64_t behind, const RowsInfo& given,
                           const Resources& resources) const {
    const RowsInfo rows = built_of(given);
    return footprint_of_call(resources, [&](const Resources& used) {
      const int64_t coded = GrowingArray<std::byte>::capacity_for(behind * graph.coder.place_bytes());
      const HostArray<std::byte> codes(coded, "codes of added rows", used);
      const MatrixBuffer joined(rows.dtype, behind, rows.cols, "the vectors of a graph", used);
      const HostArray<float> floats(used.threads() * graph.coder.row_room(), "rows to be coded", used);
    });
  }

  // Whether a rebuild is needed depends on values, so its memory is checked only here.
  SharedState built_anew(const GraphState& whole, const Resources& resources) const {
    if (counts_memory(resources))
      require_memory("the graph, built anew", build_footprint(info_of(whole), resources), resources);
    return with_front(whole, built(whole, resources));
  }

  // Whether the range of the graph's codes is too narrow for new rows, so that it must be chosen again for all. A build
  // clips one value of 1,000; with four bits it clips what minimises the error, and twice that share of the new values
  // is too much. `clipped`: values of the tail; `rows`: all rows.
  static bool clips_much(const WalkGraph& graph, int64_t clipped, int64_t rows) {
    const int64_t cols = graph.coder.cols();
    const int64_t came = rows - graph.rows();
    if (clipped * kClippedOf <= came * cols) return false;
    if (!graph.coder.packed()) return (graph.counts.clipped + clipped) * kClippedOf > rows * cols;
    return static_cast<double>(clipped) * static_cast<double>(graph.rows()) >
           2.0 * static_cast<double>(graph.counts.clipped) * static_cast<double>(came);
  }

  SharedState graph_compacted(const SharedState& state, const Resources& resources) const {
    const GraphState& whole = *walked(state.get());
    const GraphToCompact& before = *whole.front().to_compact;
    GraphFront front;
    front.graph = compact_walk_graph(*before.graph, before.kept.data(), resources);
    if (front.graph == nullptr) return built_anew(whole, resources);
    front.table = whole.front().table;
    return with_front(whole, std::move(front));
  }

  static void refuse_elsewhere(const RowsInfo& rows) {
    if (rows.cols > kMostWalkColumns) {
      throw Unsupported(fmt::format("a Graph of vectors of {} columns; it takes up to {}: put PCA in front of it",
                                    rows.cols, kMostWalkColumns));
    }
    if (rows.space.host_readable()) return;
    throw Unsupported(
        "a Graph index keeps its vectors in host memory, and these lie in a GPU's; add them "
        "from host memory, or use an index of lists (IVF)");
  }

  static GraphFront front_of(const GraphState* state) { return state == nullptr ? GraphFront() : state->front(); }

  SharedState made(SharedState store, GraphFront front, const Resources& resources) const {
    auto vectors = std::make_shared<const GraphVectors>(*store, resources);
    return std::make_shared<GraphState>(std::move(store), std::move(vectors), std::move(front), params_, degree_);
  }
  SharedState with_front(const GraphState& state, GraphFront front) const {
    return std::make_shared<GraphState>(state.store(), state.shared_vectors(), std::move(front), params_, degree_);
  }

  // The graph's arrays on the GPU that adds work on, if it was built or searched there.
  static WalkArraysOnGpu arrays_on_gpu(const GraphFront& front, const Resources& resources) {
    const Device device = resources.device();
    if (device.kind != DeviceKind::cuda || front.on_gpus == nullptr) return {};
    const auto copy =
        front.on_gpus->find(device, [&](const WalkGraphOnGpu& one) { return one.source == front.graph; });
    return copy == nullptr ? WalkArraysOnGpu() : copy->arrays(device.index);
  }
  // What a GPU has made stays there for searches; without room for the rest they bring it themselves.
  static void keep_on_gpu(const GraphFront& front, const WalkArraysOnGpu& arrays, const Resources& resources) try {
    if (!arrays.there()) return;
    const auto suits = [&](const WalkGraphOnGpu& one) { return one.source == front.graph; };
    front.on_gpus->keep(Device::cuda(arrays.device),
                        std::make_shared<const WalkGraphOnGpu>(front.graph, arrays.device, resources, arrays), suits);
  } catch (const OutOfMemory&) {
    resources.log(LogLevel::info, "the GPU has no room to keep the graph for searches");
  }

  // Encodes the rows of the tail that have no codes yet.
  static GraphFront with_tail(const GraphState& state, const Resources& resources) {
    GraphFront front = state.front();
    const WalkCoder& coder = front.graph->coder;
    const int64_t before = front.tail_rows();
    const int64_t first = front.graph->rows() + before;
    const int64_t count = state.content().rows - first;
    MatrixBuffer room;
    const MatrixView rows = state.vectors().view(first, count, room, resources);
    const auto encode = [&](std::byte* to) {
      front.tail_clipped += coder.encode_all(rows, to, resources.with_progress({}));
    };
    front.tail = front.tail.appended(count * coder.place_bytes(), "codes of added rows", resources, encode);
    return front;
  }

  // Whether searches with that beam walk; 0: there is none.
  static bool walks(int64_t beam, const GraphState& state) {
    const int64_t rows = state.content().rows;
    return beam > 0 && !plan_graph_search({.beam = beam, .rows = rows, .kept = rows, .graph = state.shape()}).exact;
  }

  GraphFront built(const GraphState& state, const Resources& resources, const NeighborsView& candidates = {}) const {
    MatrixBuffer room;
    const int64_t count = state.content().rows;
    GraphFront front;
    WalkGraphParams wanted = walk_graph_params();
    wanted.candidates = candidates;
    StageTimes times;
    WalkArraysOnGpu arrays;
    front.graph = build_walk_graph(state.vectors().view(0, count, room, resources), wanted, resources, &arrays);
    times.done("graph");
    const int64_t lost = front.graph->counts.lost;
    if (lost * kLostWarning > count) {
      resources.log(LogLevel::warning,
                    fmt::format("{} of {} vectors are not found by a short walk over the graph; search with a wider "
                                "beam, or build it with a larger degree than {}",
                                lost, count, name()));
    }
    // Measuring leaves its copies on the GPU for the first search.
    front = std::move(front).with_own_copies(state.shared_vectors());
    keep_on_gpu(front, arrays, resources);
    const GraphState unmeasured(state.store(), state.shared_vectors(), front, params_, degree_);
    front.table = std::make_shared<const BeamTable>(measure_beams(unmeasured, params_.seed, resources));
    times.done("recall");
    times.tell("index of a graph", resources);
    if (front.graph->coder.packed() && walks(kMeasuredBeams[0], unmeasured) &&
        !walks(front.table->beam_for(kDefaultRecall), unmeasured)) {
      resources.log(LogLevel::warning,
                    fmt::format("codes of four bits are too coarse for these vectors: no walk of {} has a recall of {}; "
                                "use Graph{}, or search with a larger refine",
                                name(), kDefaultRecall, degree_));
    }
    return front;
  }

  const int64_t degree_;
  const WalkBits bits_;
  const std::shared_ptr<const IndexKind> store_;
  const bool coded_;
  const IndexParams params_;
};

}  // namespace

std::shared_ptr<const IndexKind> make_graph_kind(const FactorySpec& spec, const IndexParams& params) {
  if (spec.four_bits && !walks_by_codes(params.metric)) {
    throw InvalidArgument(fmt::format(
        "Graph{}x4 with the metric {}, by which walks compare the vectors themselves; codes of four bits serve l2, "
        "sqeuclidean, inner_product and cosine: use Graph{}",
        spec.degree, name_of(params.metric), spec.degree));
  }
  // Exact searches are rare, and a layout for them would take as much memory as the graph.
  IndexParams behind = params;
  behind.prepare = false;
  std::shared_ptr<const IndexKind> store = spec.code.has_value() ? make_lists_kind(spec, behind) : make_flat(behind);
  return std::make_shared<GraphKind>(spec, std::move(store), params);
}

}  // namespace kith
