#include "index/graph_state.hpp"

#include <kith/error.hpp>

#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "core/result_exit.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_info.hpp"
#include "graph/search/walk/walk_search.hpp"
#include "index/host_rows.hpp"
#include "index/refine.hpp"
#include "rows/finite_check.hpp"
#include "rows/row_sample.hpp"
#include "rows/stored_row.hpp"

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

constexpr int64_t kExactTogether = 256;  // queries that are searched again after their walks
constexpr uint64_t kBeamStream = 0x6265616D;
constexpr int64_t kMeasuredRows = 1000;
constexpr int64_t kMeasuredK = 10;
constexpr int64_t kOftenKept = 2;  // a filter that keeps one of so many rows is not collected for

// The one asked for, or that in whose memory queries or results lie.
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

// Whether a walk without a filter has the first `candidates` places that the filter keeps in its beam, and has met
// `fewest` of them at least: all places of the beam were opened, so that their neighbours were met.
class KeptInBeam {
 public:
  static constexpr int64_t kMost = 512;  // that are counted

  KeptInBeam(const WalkView& view, const PlaceFilter& filter) : view_(view), filter_(filter) {
    std::fill(seen_, seen_ + kSlots, kNoEdge);
  }

  bool suffices(const Beam& beam, int64_t candidates, int64_t fewest) {
    int64_t in_beam = 0;
    for (int64_t i = 0; i < beam.size() && in_beam < candidates; ++i) {
      if (!filter_.keeps(beam.place(i))) continue;
      ++in_beam;
      add(beam.place(i));
    }
    if (in_beam < candidates) return false;
    for (int64_t i = 0; i < beam.size() && met_ < fewest; ++i) {
      if (beam.place(i) >= view_.rows.count()) continue;  // of the tail
      const uint32_t* const list = view_.edges + static_cast<int64_t>(beam.place(i)) * view_.degree;
      for (int64_t n = 0; n < view_.degree && list[n] != kNoEdge && met_ < fewest; ++n) {
        if (filter_.keeps(list[n])) add(list[n]);
      }
    }
    return met_ >= fewest;
  }

 private:
  static constexpr uint32_t kSlots = 2048;

  void add(uint32_t place) {
    uint32_t slot = place * 0x9E3779B1U % kSlots;
    while (seen_[slot] != kNoEdge && seen_[slot] != place) slot = (slot + 1) % kSlots;
    met_ += seen_[slot] == kNoEdge ? 1 : 0;
    seen_[slot] = place;
  }

  const WalkView& view_;
  const PlaceFilter& filter_;
  int64_t met_ = 0;
  uint32_t seen_[kSlots];
};

// The places of rows, ascending numbers, that have a place for themselves; kNoWalkPlace for others: rows that look like
// them are found by it.
std::vector<uint32_t> lone_places(const PlaceOrder& order, const std::vector<uint32_t>& rows) {
  std::vector<uint32_t> places(rows.size(), kNoWalkPlace);
  for (int64_t place = 0; place < order.places(); ++place) {
    if (order.offsets()[place + 1] - order.offsets()[place] > 1) continue;
    const auto at = std::lower_bound(rows.begin(), rows.end(), order.first_row(place));
    if (at != rows.end() && *at == order.first_row(place)) {
      places[static_cast<size_t>(at - rows.begin())] = static_cast<uint32_t>(place);
    }
  }
  return places;
}

// The queries of these numbers, copied together: search(some, part, first) finds the neighbours of which[first] and those
// after it.
template <typename Search>
void search_some(const std::vector<int64_t>& which, const MatrixView& queries, const NeighborsView& out,
                 const Resources& resources, const Search& search) {
  const auto row_bytes = static_cast<size_t>(queries.cols() * size_of(queries.dtype()));
  const auto total = static_cast<int64_t>(which.size());
  const int64_t together = std::min(kExactTogether, total);
  MatrixBuffer some(queries.dtype(), together, queries.cols(), "queries that are searched again", resources);
  Neighbors found(together, out.k, resources);
  for (int64_t first = 0; first < total; first += together) {
    const int64_t count = std::min(together, total - first);
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(some.mutable_view().row(i), queries.row(which[static_cast<size_t>(first + i)]), row_bytes);
    }
    NeighborsView part = found.view();
    part.queries = count;
    search(some.view().slice(0, count), part, first);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t query = which[static_cast<size_t>(first + i)];
      const NeighborsView one{part.ids + i * out.k, part.distances + i * out.k, 1, out.k, part.space};
      copy_neighbors(one, {out.ids + query * out.k, out.distances + query * out.k, 1, out.k, out.space}, resources);
    }
  }
}

}  // namespace

// The second look at what walks have found, with memory for each thread.
class GraphState::Comparer {
 public:
  Comparer(const GraphState& state, const GraphPlan& plan, int64_t k, int slots, const Resources& resources)
      : state_(state),
        kind_(key_kind(state.params_.metric)),
        k_(k),
        cols_(state.content().cols),
        room_(plan.candidates + k + GraphVectors::kTogether),
        queries_(slots * cols_, "queries of a walk", resources),
        floats_(slots * state.vectors_->float_room(), "candidates of a walk", resources),
        found_(slots * room_, "candidates of a walk", resources) {}

  // Of the rows at the first places, until they are plan.candidates; returns the sorted first k, and how many they are.
  std::pair<const uint64_t*, int64_t> compare(const MatrixView& queries, int64_t query, const Beam& places,
                                              int64_t candidates, const PlaceRows& rows, const uint64_t* kept,
                                              int slot) const {
    if (state_.front_.graph->coder.keys_are_exact(queries.dtype())) {
      return by_exact_keys(places, candidates, rows, kept, slot);
    }
    float* const own = queries_.data() + slot * cols_;
    widen_row(queries, query, own);
    CanonicalQuery with{own};
    canonical_inverse_norms_cpu(MatrixView(own, 1, cols_), &with.inverse_norm);
    uint64_t* const found = found_.data() + slot * room_;
    float* const floats = floats_.data() + slot * state_.vectors_->float_room();
    int64_t count = 0;
    uint32_t some[GraphVectors::kTogether];
    float keys[GraphVectors::kTogether];
    int64_t waiting = 0;
    const auto compare_waiting = [&] {
      state_.vectors_->keys(kind_, with, some, waiting, floats, keys);
      if (count + waiting > room_) {  // many rows at one place: the first k stay
        std::nth_element(found, found + k_, found + count);
        count = k_;
      }
      for (int64_t i = 0; i < waiting; ++i) found[count++] = pack_neighbor(ordered_key(keys[i]), some[i]);
      waiting = 0;
    };
    // Where a row lies is read in three steps; each asks for the memory of the next for all places at once.
    const int64_t looked_at = std::min(places.size(), candidates);
    for (int64_t i = 0; i < looked_at; ++i) rows.prefetch_offset(places.place(i));
    for (int64_t i = 0; i < looked_at; ++i) rows.prefetch_row(places.place(i));
    int64_t taken = 0;
    for (int64_t i = 0; i < places.size() && taken < candidates; ++i) {
      rows.visit(places.place(i), [&](uint32_t row) {
        if (kept != nullptr && !keeps(kept, row)) return;
        state_.vectors_->prefetch(row);
        some[waiting++] = row;
        ++taken;
        if (waiting == GraphVectors::kTogether) compare_waiting();
      });
    }
    compare_waiting();
    const int64_t first = std::min(k_, count);
    std::partial_sort(found, found + first, found + count);
    return {found, first};
  }

 private:
  // Keys of the walk are the squared distances: no vector is read, and candidates end where one is farther than k
  // others.
  std::pair<const uint64_t*, int64_t> by_exact_keys(const Beam& places, int64_t candidates, const PlaceRows& rows,
                                                    const uint64_t* kept, int slot) const {
    uint64_t* const found = found_.data() + slot * room_;
    const int64_t looked_at = std::min(places.size(), k_);
    for (int64_t i = 0; i < looked_at; ++i) rows.prefetch_offset(places.place(i));
    for (int64_t i = 0; i < looked_at; ++i) rows.prefetch_row(places.place(i));
    int64_t count = 0;
    int64_t taken = 0;
    uint32_t largest = 0;  // of the first k
    for (int64_t i = 0; i < places.size() && taken < candidates; ++i) {
      const auto square = static_cast<double>(static_cast<int32_t>(places.key(i) ^ kSignBit));
      const uint32_t key = ordered_key(kind_ == KeyKind::l2 ? canonical_key<KeyKind::l2>(square, 0, 0)
                                                            : canonical_key<KeyKind::squared_l2>(square, 0, 0));
      if (taken < k_) {
        largest = key;
      } else if (key > largest) {
        break;
      }
      rows.visit(places.place(i), [&](uint32_t row) {
        if (kept != nullptr && !keeps(kept, row)) return;
        if (count == room_) {  // many rows at one place: the first k stay
          std::nth_element(found, found + k_, found + count);
          count = k_;
        }
        found[count++] = pack_neighbor(key, row);
        ++taken;
      });
    }
    const int64_t first = std::min(k_, count);
    std::partial_sort(found, found + first, found + count);
    return {found, first};
  }

  const GraphState& state_;
  const KeyKind kind_;
  const int64_t k_;
  const int64_t cols_;
  const int64_t room_;
  HostArray<float> queries_;
  HostArray<float> floats_;
  HostArray<uint64_t> found_;
};

GraphState::GraphState(SharedState store, std::shared_ptr<const GraphVectors> vectors, GraphFront front,
                       const IndexParams& params, int64_t degree)
    : IndexState(store->content()),
      store_(std::move(store)),
      vectors_(std::move(vectors)),
      front_(std::move(front).with_own_copies()),
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
  if (params.recall > 0 && search.beam == 0) return search;  // no measured beam has it: exactly
  if (search.beam == 0) search.beam = front_.table->default_beam();
  search.degree = degree_;
  return search;
}

void GraphState::search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                        const Resources& given) const {
  const Device device = device_for(queries, out.space, given);
  if (device.kind == DeviceKind::cuda && search_on_gpu(device.index, queries, out, params, given.with_device(device))) {
    return;
  }
  const Resources resources = given.with_device(Device::cpu());
  if (only_counts(resources)) return count_search(queries, out, params, resources);
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

// The largest of what it may turn out to be: a walk with the widest beam, exact search of some queries or of all.
void GraphState::count_search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                              const Resources& resources) const {
  const SearchParams exact{.k = params.k, .filter = params.filter};
  const KeptRows kept(params.filter, content().rows, resources);
  const Footprint whole =
      footprint_of_call(resources, [&](const Resources& used) { store_->search(queries, out, exact, used); });
  const GraphSearch search = search_of(params, content().rows);
  if (search.degree == 0) return count_work(whole, resources);
  const Footprint walks = footprint_of_call(resources, [&](const Resources& used) {
    GraphPlan plan = plan_graph_search(search);
    const bool filtered = params.filter.form() != RowFilter::Form::none;
    if (filtered) plan.walk = widest_walk(search);
    if (plan.exact && !filtered) return;
    plan.candidates = std::min(search.refine, kWidestBeam / search.k) * search.k;
    const HostRows rows(queries, used);
    const HostNeighbors results(out, used);
    const int64_t room = WalkCoder::query_bytes(content().cols);
    const WalkSearch walks_there(plan.walk, degree_, room, queries.rows(), used);
    const Comparer comparer(*this, plan, params.k, walks_there.slots(), used);
    const HostArray<uint8_t> failed(queries.rows(), "queries that are searched exactly", used);
    const int64_t some = std::min(kExactTogether, queries.rows());
    MatrixBuffer copied(queries.dtype(), some, queries.cols(), "queries that are searched again", used);
    Neighbors found(some, params.k, used);
    // Of a filter: queries that are walked again, before some of them are searched exactly.
    const int64_t again = filtered ? some : 0;
    const MatrixBuffer walked(queries.dtype(), again, queries.cols(), "queries that are searched again", used);
    const Neighbors found_again(again, params.k, used);
    store_->search(copied.view(), found.view(), exact, used);
  });
  count_work(whole.then(walks), resources);
}

void GraphState::walk(const GraphPlan& plan, const Asked& asked, const NeighborsView& out, const KeptRows& kept,
                      const Resources& resources, bool may_use_beam) const {
  const MatrixView& queries = asked.queries;
  const WalkGraph& graph = *front_.graph;
  const WalkView view = graph.view(front_.tail == nullptr ? nullptr : front_.tail->data(), front_.tail_rows());
  const PlaceRows place_rows = graph.order.view();
  const uint64_t* const bits = kept.leaves_some_out() ? kept.bits() : nullptr;
  const PlaceFilter place_filter{bits, place_rows};
  const int64_t most = std::min(out.k, kept.count());  // that every query finds
  // A filter that keeps most rows, of removed ones say, leaves enough of them in the beam: what is kept need not be
  // collected beside it. A beam without enough is walked again, so that what is found is the same.
  const int64_t rows = content().rows;
  const bool from_beam = bits != nullptr && may_use_beam && kept.count() * kOftenKept >= rows &&
                         plan.fewest_kept <= KeptInBeam::kMost &&
                         plan.walk.beam * kept.count() * 8 >= plan.candidates * rows * 9;  // an eighth to spare
  WalkWish wish = plan.walk;
  if (from_beam) wish.kept = 0;
  const HostArray<uint8_t> failed(queries.rows(), "queries that are searched exactly", resources);
  std::optional<WalkSearch> walks_there(std::in_place, wish, degree_, WalkCoder::query_bytes(content().cols),
                                        queries.rows(), resources);
  std::optional<Comparer> comparer(std::in_place, *this, plan, out.k, walks_there->slots(), resources);
  const ResultExit exit(params_.metric);
  ProgressMeter meter("search", queries.rows(), resources);
  walks_there->run(
      view, bits == nullptr || from_beam ? nullptr : &place_filter, queries.rows(), meter, resources,
      [&](int64_t query, std::byte* memory) {
        WalkQuery made = graph.coder.query(queries, query, WalkCoder::query_room(memory, content().cols));
        if (asked.hidden != nullptr) made.hidden = asked.hidden[query];
        return made;
      },
      [&](int64_t query, const Walk& walk, int slot) {
        const Beam& found = walk.found();
        const bool enough = from_beam
                                ? KeptInBeam(view, place_filter).suffices(found, plan.candidates, plan.fewest_kept)
                                : bits == nullptr || found.size() >= plan.fewest_kept;
        failed[query] = enough ? 0 : 1;
        if (failed[query] != 0) return;
        const auto [packed, count] = comparer->compare(queries, query, found, plan.candidates, place_rows, bits, slot);
        failed[query] = count < most ? 1 : 0;
        const int64_t first = query * out.k;
        write_results(exit, packed, count, out.ids + first, out.distances + first);
        for (int64_t i = first + count; i < first + out.k; ++i) {
          write_results(exit, &kPadding, 1, out.ids + i, out.distances + i);
        }
      });
  meter.finish();
  std::vector<int64_t> which;
  for (int64_t query = 0; query < queries.rows(); ++query) {
    if (failed[query] != 0) which.push_back(query);
  }
  if (which.empty()) return;
  comparer.reset();  // whose memory the others take
  walks_there.reset();
  if (!from_beam) return search_exactly(*store_, which, queries, out, asked.filter, resources);
  search_some(which, queries, out, resources, [&](const MatrixView& some, const NeighborsView& part, int64_t first) {
    std::vector<uint32_t> hidden;
    if (asked.hidden != nullptr) {
      for (int64_t i = first; i < first + some.rows(); ++i) {
        hidden.push_back(asked.hidden[which[static_cast<size_t>(i)]]);
      }
    }
    walk(plan, {some, asked.filter, hidden.empty() ? nullptr : hidden.data()}, part, kept, resources, false);
  });
}

void GraphState::search_exactly(const IndexState& state, const std::vector<int64_t>& which, const MatrixView& queries,
                                const NeighborsView& out, const RowFilter& filter, const Resources& resources) {
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
  const WalkView view = graph.view(front_.tail == nullptr ? nullptr : front_.tail->data(), front_.tail_rows());
  WalkSearch walks_there(plan.walk, degree_, WalkCoder::query_bytes(content().cols), queries.rows(), resources);
  std::vector<int64_t> counts(static_cast<size_t>(walks_there.slots()), 0);
  ProgressMeter meter("count", queries.rows(), resources);
  walks_there.run(
      view, nullptr, queries.rows(), meter, resources,
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
  if (front_.tail != nullptr) total.host += front_.tail->bytes();
  total.device += front_.on_gpus->bytes(DeviceKind::cuda) + rows_on_gpus_.bytes(DeviceKind::cuda);
  return total;
}

void GraphState::describe(IndexInfo& info, const LiveRows& live) const {
  store_->describe(info, live);
  info.lists = 0;
  info.degree = degree_;
  if (front_.graph == nullptr) return;
  const WalkGraph& graph = *front_.graph;
  info.unlinked = front_.tail_rows();
  info.clipped = graph.facts.clipped + front_.tail_clipped;
  info.lost = graph.facts.lost;
  info.beam = front_.table->default_beam();
  for (const BeamRecall& one : front_.table->measured()) info.recalls.emplace_back(one.beam, one.recall);
  info.parts.emplace_back("codes of the walk",
                          graph.codes.bytes() + (front_.tail == nullptr ? 0 : front_.tail->bytes()));
  info.parts.emplace_back("edges", graph.edges.bytes());
  info.parts.emplace_back("places and cells", graph.bytes() - graph.codes.bytes() - graph.edges.bytes());
}

void GraphState::give_parts(IndexParts& parts, const Resources& resources) const {
  store_->give_parts(parts, resources);
  if (front_.graph == nullptr) return;
  parts.graph = parts_of(front_.graph, front_.table->measured());
}

GraphParts parts_of(const std::shared_ptr<const WalkGraph>& graph, const std::vector<BeamRecall>& measured) {
  const auto share = [&](const auto& array, int64_t count) {
    using T = std::remove_cvref_t<decltype(array[0])>;
    return PartArray<T>({array.data(), static_cast<size_t>(count)}, graph);
  };
  GraphParts own;
  own.degree = graph->degree;
  own.places = graph->order.places();
  own.rows = graph->rows();
  own.cells = graph->cells;
  own.entry_count = graph->entries.size();
  own.clipped = graph->facts.clipped;
  own.connected = graph->facts.parts;
  own.lost = graph->facts.lost;
  own.beams = std::ssize(measured);
  if (graph->coder.has_codes()) {
    own.scale = {graph->coder.step()};
    own.scale.insert(own.scale.end(), graph->coder.offsets().begin(), graph->coder.offsets().end());
  }
  own.codes = share(graph->codes, own.places * graph->coder.place_bytes());
  own.edges = share(graph->edges, own.places * own.degree);
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

BeamTable measure_beams(const GraphState& state, uint64_t seed, const Resources& given) try {
  const Resources resources = given.with_progress({}).with_device(Device::cpu());
  // A limit was not told of copies on a GPU.
  const bool on_gpu = given.device().kind == DeviceKind::cuda && !counts_memory(given);
  const Resources asked = on_gpu ? given.with_progress({}) : resources;
  const int64_t rows = state.content().rows;
  const std::vector<uint32_t> drawn = drawn_rows(CounterRng(seed, kBeamStream), rows, kMeasuredRows, resources);
  const auto count = static_cast<int64_t>(drawn.size());
  const DType dtype = state.vectors().dtype();
  const int64_t cols = state.content().cols;
  MatrixBuffer queries(dtype, count, cols, "rows that recall is measured on", resources);
  // One more, since most find themselves.
  Neighbors truth(count, kMeasuredK + 1, resources);
  Neighbors found(count, kMeasuredK + 1, resources);
  const SearchParams exact{.k = kMeasuredK + 1};
  if (only_counts(resources)) {
    state.store()->search(queries.view(), truth.view(), exact, resources);
    return {};
  }
  for (int64_t i = 0; i < count; ++i) {
    MatrixBuffer room;
    const MatrixView row = state.vectors().view(drawn[static_cast<size_t>(i)], 1, room, resources);
    std::memcpy(queries.mutable_view().row(i), row.data(), static_cast<size_t>(cols * size_of(dtype)));
  }
  (on_gpu ? state.exact_on_gpu(asked.device().index, asked) : state.store())
      ->search(queries.view(), truth.view(), exact, asked);
  // Distances of the kMeasuredK nearest others. Rows as near as the last of them count as found, whichever they are.
  const bool larger = state.metric() == Metric::inner_product;
  const auto others = [&](const Neighbors& of, int64_t query, float* distances) {
    const int64_t* const ids = of.ids(query);
    const int64_t* const end = ids + kMeasuredK + 1;
    const int64_t own = std::find(ids, end, int64_t{drawn[static_cast<size_t>(query)]}) - ids;
    int64_t kept = 0;
    for (int64_t i = 0; i <= kMeasuredK; ++i) {
      if (i != own && kept < kMeasuredK) distances[kept++] = of.distances(query)[i];
    }
  };
  const std::vector<uint32_t> hidden = lone_places(state.front().graph->order, drawn);
  const KeptRows all({}, rows, resources);
  std::vector<BeamRecall> measured;
  for (const int64_t beam : kMeasuredBeams) {
    const GraphPlan plan = plan_graph_search(state.search_of({.k = kMeasuredK, .beam = beam}, rows));
    if (plan.exact) {
      measured.push_back({beam, 1.0});
      break;
    }
    const GraphState::Asked sought{queries.view(), {}, hidden.data()};
    if (!on_gpu || !state.walk_on_gpu(plan, sought, found.view(), asked)) {
      state.walk(plan, sought, found.view(), all, resources);
    }
    int64_t right = 0;
    for (int64_t query = 0; query < count; ++query) {
      float wanted[kMeasuredK];
      float got[kMeasuredK];
      others(truth, query, wanted);
      others(found, query, got);
      const float last = wanted[kMeasuredK - 1];
      right += std::count_if(got, got + kMeasuredK, [&](float d) { return larger ? d >= last : d <= last; });
    }
    const double recall = static_cast<double>(right) / static_cast<double>(count * kMeasuredK);
    measured.push_back({beam, static_cast<double>(static_cast<float>(recall))});
    if (recall >= kMeasuredRecall) break;
  }
  return BeamTable(std::move(measured));
} catch (const OutOfMemory&) {
  // The graph is there, and the CPU measures the same.
  if (given.device().kind != DeviceKind::cuda) throw;
  given.log(LogLevel::info, "recall is measured on the CPU: the GPU has no memory left for the graph and its rows");
  return measure_beams(state, seed, given.with_device(Device::cpu()));
}

}  // namespace kith
