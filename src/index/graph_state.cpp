#include "index/graph_state.hpp"

#include <kith/error.hpp>

#include "core/parallel_for.hpp"
#include "core/result_exit.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_info.hpp"
#include "graph/search/walk/walk_search.hpp"
#include "index/graph_comparer.hpp"
#include "index/host_neighbors.hpp"
#include "index/search_some.hpp"
#include "rows/finite_check.hpp"
#include "rows/host_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

namespace kith {
namespace {

// The requested device, or the one that holds queries or results.
Device device_for(const MatrixView& queries, const MemorySpace& out, const Resources& resources) {
  const Device asked = resources.device();
  if (asked.kind == DeviceKind::cuda) {
    usable_gpu_when_idle(asked);
    return asked;
  }
  if (asked.kind == DeviceKind::cpu) return asked;
  for (const MemorySpace& space : {queries.space(), out}) {
    if (!space.host_readable()) return Device::cuda(space.device);
  }
  return Device::cpu();
}

// The number of places of the beam that the filter keeps, counted up to `most`.
int64_t kept_in_beam(const Beam& beam, const PlaceFilter& filter, int64_t most) {
  const PlaceRows& rows = filter.rows;
  for (int64_t i = 0; i < beam.size(); ++i) rows.prefetch_offset(beam.place(i));
  for (int64_t i = 0; i < beam.size(); ++i) rows.prefetch_row(beam.place(i));
  int64_t kept = 0;
  for (int64_t i = 0; i < beam.size() && kept < most; ++i) kept += filter.keeps(beam.place(i)) ? 1 : 0;
  return kept;
}

}  // namespace

GraphState::GraphState(SharedState store, std::shared_ptr<const GraphVectors> vectors, GraphFront front,
                       const IndexParams& params, int64_t degree)
    : IndexState(store->content()),
      store_(std::move(store)),
      vectors_(std::move(vectors)),
      front_(std::move(front).with_own_copies(vectors_)),
      params_(params),
      degree_(degree) {}

GraphSearch GraphState::search_of(const SearchParams& params, int64_t kept) const {
  GraphSearch search;
  search.k = params.k;
  search.rows = content().rows;
  search.kept = kept;
  if (params.width > 0) search.width = params.width;
  if (params.refine > 0) search.refine = params.refine;
  if (front_.graph == nullptr) return search;
  search.beam = params.beam;
  if (params.recall > 0) search.beam = front_.table->beam_for(params.recall);
  if (params.recall > 0 && search.beam == 0) return search;  // no measured beam reaches it: search exactly
  if (search.beam == 0) search.beam = front_.table->default_beam();
  search.graph = shape();
  return search;
}

GraphComparer GraphState::comparer_for(const GraphPlan& plan, int64_t k, int slots, const Resources& resources) const {
  return {*vectors_, front_.graph->coder, {params_.metric, plan.candidates, k, slots}, resources};
}

void GraphState::search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                        const Resources& given) const {
  const Device device = device_for(queries, out.space, given);
  if (device.kind == DeviceKind::cuda && search_on_gpu(device.index, queries, out, params, given.with_device(device))) {
    return;
  }
  const Resources resources = given.with_device(Device::cpu());
  if (counts_only(resources)) return count_search(queries, out, params, resources);
  KeptRows kept(params.filter, content().rows, resources);
  const GraphPlan plan = plan_graph_search(search_of(params, kept.count()));
  if (plan.exact) return store_->search(queries, out, {.k = params.k, .filter = params.filter}, resources);
  const HostRows rows(queries, resources);
  const HostNeighbors results(out, resources);
  if (params_.check_finite) refuse_not_finite("query", rows.view(), {0}, resources);
  if (params_.metric == Metric::chi_square) refuse_negative("query", rows.view(), {0}, resources);
  if (kept.leaves_some_out()) kept.bits(resources);
  walk(plan, {rows.view(), params.filter}, results.view(), kept, resources);
  results.deliver(resources);
}

// The maximum over all cases: a walk with the widest beam, exact search of some queries or of all.
void GraphState::count_search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                              const Resources& resources) const {
  const SearchParams exact{.k = params.k, .filter = params.filter};
  const KeptRows kept(params.filter, content().rows, resources);
  const Footprint whole =
      footprint_of_call(resources, [&](const Resources& used) { store_->search(queries, out, exact, used); });
  const GraphSearch search = search_of(params, content().rows);
  if (search.graph.degree == 0) return count_work(whole, resources);
  const Footprint walks = footprint_of_call(resources, [&](const Resources& used) {
    GraphPlan plan = plan_graph_search(search);
    const bool filtered = params.filter.form() != RowFilter::Form::none;
    if (filtered) plan.walk = widest_walk(search);
    if (plan.exact && !filtered) return;
    plan.candidates = search.candidates();
    const HostRows rows(queries, used);
    const HostNeighbors results(out, used);
    const int64_t room = WalkCoder::query_bytes(content().cols);
    const WalkSearch walks_there(plan.walk, degree_, room, queries.rows(), used);
    const GraphComparer comparer = comparer_for(plan, params.k, walks_there.slots(), used);
    const HostArray<AfterWalk> then(queries.rows(), "queries that are searched exactly", used);
    // Groups of queries to walk again with ever wider beams; those that still find too little are searched exactly.
    std::vector<std::unique_ptr<SomeQueries>> again;
    for (int64_t i = filtered ? most_widenings(search) + 1 : 1; i > 0; --i) {
      again.push_back(std::make_unique<SomeQueries>(queries.dtype(), queries.cols(), params.k, queries.rows(), used));
    }
    store_->search(again.back()->queries.view(), again.back()->found.view(), exact, used);
  });
  count_work(whole.then(walks), resources);
}

void GraphState::walk(const GraphPlan& plan, const Asked& asked, const NeighborsView& out, const KeptRows& kept,
                      const Resources& resources) const {
  const MatrixView& queries = asked.queries;
  const WalkGraph& graph = *front_.graph;
  const WalkView view = front_.view();
  const PlaceRows place_rows = graph.order.view();
  const uint64_t* const bits = kept.leaves_some_out() ? kept.bits() : nullptr;
  const PlaceFilter place_filter{bits, place_rows};
  const int64_t most = std::min(out.k, kept.count());  // that every query finds
  const HostArray<AfterWalk> then(queries.rows(), "queries that are searched exactly", resources);
  std::optional<WalkSearch> walks_there(std::in_place, plan.walk, degree_, WalkCoder::query_bytes(content().cols),
                                        queries.rows(), resources);
  std::optional<GraphComparer> comparer(comparer_for(plan, out.k, walks_there->slots(), resources));
  const ResultExit exit(params_.metric);
  ProgressMeter meter("search", queries.rows(), resources);
  walks_there->run(
      view, queries.rows(), meter, resources,
      [&](int64_t query, std::byte* memory) {
        WalkQuery made = graph.coder.query(queries, query, WalkCoder::query_room(memory, content().cols));
        if (asked.hidden != nullptr) made.hidden = asked.hidden[query];
        return made;
      },
      [&](int64_t query, const Walk& walk, int slot) {
        const int64_t there = bits == nullptr ? 0 : kept_in_beam(walk.beam(), place_filter, plan.fewest_kept);
        then[query] = after_walk(there, plan.fewest_kept);
        if (then[query] != AfterWalk::done) return;
        const auto [packed, count] = comparer->compare(queries, query, walk.beam(), place_rows, bits, slot);
        if (count < most) then[query] = AfterWalk::wider;
        const int64_t first = query * out.k;
        write_results(exit, packed, count, out.ids + first, out.distances + first);
        for (int64_t i = first + count; i < first + out.k; ++i) {
          write_results(exit, &kPadding, 1, out.ids + i, out.distances + i);
        }
      });
  meter.finish();
  QueriesLeft left;
  for (int64_t query = 0; query < queries.rows(); ++query) left.add(query, then[query]);
  comparer.reset();  // whose memory the others take
  walks_there.reset();
  const GraphPlan wider = wider_plan(plan, kept.count(), shape());
  if (wider.exact) left.search_all_exactly();
  search_exactly(*store_, left.exact, queries, out, asked.filter, resources);
  if (left.wider.empty()) return;
  search_some(left.wider, queries, out, resources, [&](const MatrixView& some, const NeighborsView& part, int64_t) {
    walk(wider, {some, asked.filter}, part, kept, resources);
  });
}

void GraphState::search_exactly(const IndexState& state, const std::vector<int64_t>& which, const MatrixView& queries,
                                const NeighborsView& out, const RowFilter& filter, const Resources& resources) {
  if (which.empty()) return;
  search_some(which, queries, out, resources, [&](const MatrixView& some, const NeighborsView& part, int64_t) {
    state.search(some, part, {.k = out.k, .filter = filter}, resources);
  });
}

void GraphState::search_all(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                            const Resources& resources) const {
  const Device device = device_for(queries, out.space, resources);
  const Resources used = resources.with_device(device);
  const bool on_gpu = device.kind == DeviceKind::cuda;
  if (on_gpu) refuse_bad_queries(queries, used);
  const SharedState state = on_gpu ? exact_on_gpu(device.index, used) : store_;
  state->search(queries, out, {.k = params.k, .filter = params.filter}, used);
}

int64_t GraphState::compared(const MatrixView& queries, const SearchParams& params, const Resources& given) const {
  const Resources resources = given.with_device(Device::cpu()).with_progress({});
  const GraphPlan plan = plan_graph_search(search_of(params, content().rows));
  if (plan.exact) return queries.rows() * content().rows;
  const WalkGraph& graph = *front_.graph;
  const WalkView view = front_.view();
  WalkSearch walks_there(plan.walk, degree_, WalkCoder::query_bytes(content().cols), queries.rows(), resources);
  std::vector<int64_t> counts(static_cast<size_t>(walks_there.slots()), 0);
  ProgressMeter meter("count", queries.rows(), resources);
  walks_there.run(
      view, queries.rows(), meter, resources,
      [&](int64_t query, std::byte* memory) {
        return graph.coder.query(queries, query, WalkCoder::query_room(memory, content().cols));
      },
      [&](int64_t, const Walk& walk, int slot) {
        const int64_t again = std::min({plan.candidates, walk.beam().size(), content().rows});
        counts[static_cast<size_t>(slot)] += walk.compared() + again;
      });
  meter.finish();
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

RangeNeighbors GraphState::range_search(const MatrixView& queries, const RangeSearchParams& params,
                                        const Resources& resources) const {
  RangeSearchParams exact = params;
  exact.probes = 0;
  const Device device = device_for(queries, params.result_space, resources);
  const Resources used = resources.with_device(device);
  const bool on_gpu = device.kind == DeviceKind::cuda;
  if (on_gpu) refuse_bad_queries(queries, used);
  const SharedState state = on_gpu ? exact_on_gpu(device.index, used) : store_;
  return state->range_search(queries, exact, used);
}

void GraphState::reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources& resources) const {
  store_->reconstruct(rows, out, resources);
}

IndexBytes GraphState::bytes() const {
  IndexBytes total = store_->bytes();
  if (front_.graph != nullptr) total.host += front_.graph->bytes();
  total.host += front_.tail.bytes();
  total.device += front_.on_gpus->bytes(DeviceKind::cuda) + front_.rows_on_gpus->bytes(DeviceKind::cuda);
  return total;
}

void GraphState::describe(IndexInfo& info, const LiveRows& live) const {
  store_->describe(info, live);
  info.lists = 0;
  info.degree = degree_;
  if (front_.graph == nullptr) return;
  const WalkGraph& graph = *front_.graph;
  info.unlinked = front_.tail_rows();
  info.walk_bits = !graph.coder.has_codes() ? 0 : graph.coder.packed() ? 4 : 8;
  info.clipped = graph.counts.clipped + front_.tail_clipped;
  info.lost = graph.counts.lost;
  info.beam = front_.table->default_beam();
  for (const BeamRecall& one : front_.table->measured()) info.recalls.emplace_back(one.beam, one.recall);
  info.parts.emplace_back("codes of the walk", graph.codes.bytes() + front_.tail.bytes());
  info.parts.emplace_back("edges", graph.edges.bytes());
  info.parts.emplace_back("places and cells", graph.bytes() - graph.codes.bytes() - graph.edges.bytes());
}

void GraphState::give_parts(IndexParts& parts, const Resources& resources) const {
  store_->give_parts(parts, resources);
  if (front_.graph == nullptr) return;
  parts.graph = parts_of(front_.graph, front_.table->measured(), resources);
}

GraphParts parts_of(const std::shared_ptr<const WalkGraph>& graph, const std::vector<BeamRecall>& measured,
                    const Resources& resources) {
  const auto share = [&](const auto& array, int64_t count) {
    using T = std::remove_cvref_t<decltype(array[0])>;
    return PartArray<T>({array.data(), static_cast<size_t>(count)}, graph);
  };
  GraphParts own;
  own.degree = graph->degree;
  own.bits = graph->coder.packed() ? 4 : 8;
  own.places = graph->order.places();
  own.rows = graph->rows();
  own.cells = graph->cells;
  own.entry_count = graph->entries.size();
  own.clipped = graph->counts.clipped;
  own.connected = graph->counts.parts;
  own.lost = graph->counts.lost;
  own.beams = std::ssize(measured);
  if (graph->coder.has_codes()) {
    own.scale = {graph->coder.step()};
    own.scale.insert(own.scale.end(), graph->coder.offsets().begin(), graph->coder.offsets().end());
  }
  own.codes = share(graph->codes, own.places * graph->coder.place_bytes());
  if (graph->edges.flat() != nullptr) {
    own.edges = PartArray<uint32_t>({graph->edges.flat(), static_cast<size_t>(own.places * own.degree)}, graph);
  } else {
    HostArray<uint32_t> together(own.places * own.degree, "the graph's edges", resources);
    if (!counts_only(resources)) graph->edges.copy_to(together.data(), resources);
    own.edges = std::move(together);
  }
  own.place_offsets = share(graph->order.offsets(), own.places + 1);
  own.place_rows = share(graph->order.rows(), own.rows);
  own.centres = share(graph->centres, graph->centres.size());
  own.entry_offsets = share(graph->entry_offsets, own.cells + 1);
  own.entries = share(graph->entries, own.entry_count);
  for (const BeamRecall& one : measured) {
    own.table.push_back(static_cast<float>(one.beam));
    own.table.push_back(static_cast<float>(one.recall));
  }
  return own;
}

}  // namespace kith
