#include "graph/search/build/compact_walk_graph.hpp"

#include "core/memory_budget.hpp"
#include "core/within_limits.hpp"
#include "graph/search/build/build_walk_graph.hpp"
#include "graph/search/build/link_places.hpp"
#include "graph/search/build/walk_entries.hpp"
#include "graph/search/walk/walk_search.hpp"
#include "rows/kept_rows.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kMostDroppedShare = 2;  // at most one of this many rows may be dropped

// Most candidates of a place: its neighbours, and theirs.
int64_t most_candidates(int64_t degree) { return degree * (1 + degree); }

// Which places stay, and their new numbers.
struct KeptPlaces {
  HostArray<uint32_t> number;  // of each old place; kNoEdge: it goes
  std::vector<uint32_t> old;   // of each new one
};

KeptPlaces kept_places(const WalkGraph& graph, const uint64_t* kept, const Resources& resources) {
  KeptPlaces places;
  places.number = HostArray<uint32_t>(graph.order.places(), "the places that stay", resources);
  const PlaceFilter filter{kept, graph.order.view()};
  for (int64_t place = 0; place < graph.order.places(); ++place) {
    const bool stays = filter.keeps(static_cast<uint32_t>(place));
    places.number[place] = stays ? static_cast<uint32_t>(places.old.size()) : kNoEdge;
    if (stays) places.old.push_back(static_cast<uint32_t>(place));
  }
  return places;
}

// Calls use(old place) for each neighbour of an old place, nearest first as lists are made.
template <typename Use>
void visit_list(const WalkGraph& graph, uint32_t place, const Use& use) {
  const uint32_t* const list = graph.edges.of(place);
  for (int64_t i = 0; i < graph.degree && list[i] != kNoEdge; ++i) use(list[i]);
}

// The new numbers of whom a place that stays may be joined to, each once: its neighbours that stay and, where some of
// them go, the neighbours of all. Returns how many they are.
int64_t candidates_of(const WalkGraph& graph, const KeptPlaces& places, uint32_t place, uint32_t* others) {
  uint32_t* end = others;
  bool some_go = false;
  const auto add = [&](uint32_t old) {
    const uint32_t number = places.number[old];
    if (number == kNoEdge) {
      some_go = true;
    } else if (old != place) {
      *end++ = number;
    }
  };
  visit_list(graph, place, add);
  if (!some_go) return end - others;
  visit_list(graph, place, [&](uint32_t neighbor) { visit_list(graph, neighbor, add); });
  std::sort(others, end);
  return std::unique(others, end) - others;
}

HostArray<uint32_t> kept_edges(const WalkGraph& graph, const KeptPlaces& places, const WalkRows& rows,
                               const Resources& resources) {
  const PlaceCandidates candidates{
      most_candidates(graph.degree), wanted_candidates(graph.degree), [&](int64_t place, uint32_t* others) {
        return candidates_of(graph, places, places.old[static_cast<size_t>(place)], others);
      }};
  return link_places(rows, candidates, graph.degree, resources);
}

// Each cell's entries, those that go replaced by their nearest neighbour that stays.
CellLists kept_entries(const WalkGraph& graph, const KeptPlaces& places) {
  CellLists cells(static_cast<size_t>(graph.cells));
  for (int64_t cell = 0; cell < graph.cells; ++cell) {
    std::vector<uint32_t>& own = cells[static_cast<size_t>(cell)];
    const auto add = [&](uint32_t number) {
      if (number != kNoEdge && std::find(own.begin(), own.end(), number) == own.end()) own.push_back(number);
    };
    for (int64_t i = graph.entry_offsets[cell]; i < graph.entry_offsets[cell + 1]; ++i) {
      uint32_t number = places.number[graph.entries[i]];
      visit_list(graph, graph.entries[i], [&](uint32_t next) {
        if (number == kNoEdge) number = places.number[next];
      });
      add(number);
    }
  }
  return cells;
}

// The cell of whose centre a place is nearest.
size_t nearest_cell(const WalkView& graph, uint32_t place) {
  std::vector<float> floats(static_cast<size_t>(graph.rows.code_columns()));
  std::vector<uint32_t> numbers(static_cast<size_t>(graph.centres.count()));
  std::vector<uint32_t> keys(numbers.size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  const WalkQuery query = query_of_place(graph.rows, place, floats.data());
  walk_keys(graph.centres, query, numbers.data(), graph.centres.count(), keys.data());
  return static_cast<size_t>(std::min_element(keys.begin(), keys.end()) - keys.begin());
}

// The place of each row that stays.
HostArray<uint32_t> kept_place_of(const WalkGraph& graph, const uint64_t* kept, const KeptPlaces& places,
                                  const Resources& resources) {
  HostArray<uint32_t> place_of_old(graph.rows(), "the places of rows", resources);
  const PlaceRows rows = graph.order.view();
  for (int64_t place = 0; place < graph.order.places(); ++place) {
    rows.visit(static_cast<uint32_t>(place), [&](uint32_t row) { place_of_old[row] = places.number[place]; });
  }
  int64_t count = 0;
  for (int64_t row = 0; row < graph.rows(); ++row) {
    if (keeps(kept, row)) place_of_old[count++] = place_of_old[row];
  }
  HostArray<uint32_t> place_of(count, "the places of rows", resources);
  std::copy_n(place_of_old.begin(), count, place_of.begin());
  return place_of;
}

}  // namespace

bool can_compact(const WalkGraph& graph, int64_t dropped) {
  return graph.coder.kind() != WalkKind::products && dropped * kMostDroppedShare <= graph.rows();
}

// As if all places stayed.
Footprint compact_footprint(const WalkGraph& graph, const Resources& resources) {
  return footprint_of_call(resources, [&](const Resources& given) {
    const Resources used = given.with_device(Device::cpu());
    const int64_t places = graph.order.places();
    const WalkRows rows = graph.coder.rows_of(counted_only_memory(), places);
    const HostArray<uint64_t> bits(KeptRows::words_for(graph.rows()), "the rows of a graph that stay", used);
    const HostArray<uint32_t> numbers(places, "the places that stay", used);
    const HostArray<std::byte> codes(places * graph.coder.place_bytes(), "the graph's codes", used);
    const PlaceCandidates candidates{most_candidates(graph.degree), wanted_candidates(graph.degree), {}};
    const HostArray<uint32_t> edges = link_places(rows, candidates, graph.degree, used);
    const HostArray<uint32_t> entries(graph.cells + 1 + graph.entries.size(), "the entries of cells", used);
    const HostArray<uint32_t> place_of(2 * graph.rows(), "the places of rows", used);
    const HostArray<uint32_t> order(places + 1 + graph.rows(), "the places of rows", used);
    const int64_t floats = rows.values.cols() * static_cast<int64_t>(sizeof(float));
    const WalkSearch walks(kSelfWalk, graph.degree, floats, places, used);
  });
}

std::shared_ptr<const WalkGraph> compact_walk_graph(const WalkGraph& graph, const uint64_t* kept,
                                                    const Resources& given) {
  const Resources resources = given.with_device(Device::cpu()).with_progress({});
  const KeptPlaces places = kept_places(graph, kept, resources);
  const auto count = static_cast<int64_t>(places.old.size());
  WalkEntries entries;
  CellLists cells = kept_entries(graph, places);
  flatten(cells, entries, resources);
  if (entries.places.size() == 0) return nullptr;
  const int64_t each = graph.coder.place_bytes();
  HostArray<std::byte> codes(count * each, "the graph's codes", resources);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(codes.data() + i * each, graph.codes.data() + places.old[static_cast<size_t>(i)] * each,
                static_cast<size_t>(each));
  }
  const WalkRows rows = graph.coder.rows_of(codes.data(), count);
  HostArray<uint32_t> edges = kept_edges(graph, places, rows, resources);
  const HostArray<uint32_t> place_of = kept_place_of(graph, kept, places, resources);

  WalkView view = graph.view(nullptr, 0);
  view.rows = rows;
  view.edges = edges.data();
  view.pages = nullptr;
  std::vector<uint32_t> sought(static_cast<size_t>(count));
  std::iota(sought.begin(), sought.end(), 0U);
  WalkGraphCounts counts = graph.counts;
  // It is not known which rows had them: keeps their share.
  counts.clipped = static_cast<int64_t>(static_cast<double>(counts.clipped) * static_cast<double>(place_of.size()) /
                                        static_cast<double>(graph.rows()));
  const auto show = [&] {
    flatten(cells, entries, resources);
    view.entry_offsets = entries.offsets.data();
    view.entries = entries.places.data();
    return view;
  };
  const PlacesToMend mended{.view = show,
                            .list_of = [&](uint32_t place) { return edges.data() + place * graph.degree; },
                            .no_room =
                                [&](uint32_t place) {
                                  std::vector<uint32_t>& own = cells[nearest_cell(view, place)];
                                  if (std::find(own.begin(), own.end(), place) == own.end()) own.push_back(place);
                                }};
  counts.lost = mend_places(mended, std::move(sought), *make_place_search_cpu(), resources);
  return std::make_shared<const WalkGraph>(
      WalkGraph{graph.coder, graph.degree, PlaceOrder::from_places(place_of, count, resources), std::move(codes),
                WalkLists(std::move(edges), count, graph.degree), graph.cells, graph.centres,
                std::move(entries.offsets), std::move(entries.places), counts, graph.packed_centres});
}

}  // namespace kith
