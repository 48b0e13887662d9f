#include "graph/search/build/walk_entries.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "graph/search/walk/walk_search.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kMostRepairs = 8;
constexpr int kRepairRounds = 3;
constexpr int64_t kRepairEdges = 2;  // to a lost place

// The smallest place of each connected part, for every place of it.
class ConnectedParts {
 public:
  ConnectedParts(const WalkView& graph, const Resources& resources)
      : parents_(graph.rows.count(), "the connected parts of a graph", resources) {
    if (counts_only(resources)) return;
    std::iota(parents_.begin(), parents_.end(), 0U);
    for (int64_t place = 0; place < graph.rows.count(); ++place) {
      const uint32_t* const list = graph.list_of(static_cast<uint32_t>(place));
      for (int64_t i = 0; i < graph.degree && list[i] != kNoEdge; ++i) join(static_cast<uint32_t>(place), list[i]);
    }
    for (int64_t place = 0; place < graph.rows.count(); ++place) parents_[place] = of(static_cast<uint32_t>(place));
  }
  HostArray<uint32_t> take() && { return std::move(parents_); }

 private:
  uint32_t of(uint32_t place) const {
    while (parents_[place] != place) {
      parents_[place] = parents_[parents_[place]];
      place = parents_[place];
    }
    return place;
  }
  void join(uint32_t a, uint32_t b) {
    a = of(a);
    b = of(b);
    if (a != b) parents_[std::max(a, b)] = std::min(a, b);
  }

  HostArray<uint32_t> parents_;
};

// For each part in a cell the place nearest to its centre, by (key, place).
CellLists nearest_of_parts(const WalkView& graph, const uint32_t* cells, const uint32_t* parts,
                           const Resources& resources) {
  // An entry of its part, the nearest first.
  struct PartPlace {
    uint32_t part;
    uint64_t near;
  };
  const int64_t count = graph.rows.count();
  const int64_t cell_count = graph.centres.count();
  const int64_t cols = graph.rows.values.cols();
  HostArray<uint32_t> places(count, "the entries of cells", resources);
  HostArray<uint32_t> keys(count, "the entries of cells", resources);
  HostArray<PartPlace> sorted(count, "the entries of cells", resources);
  HostArray<float> floats(resources.threads() * cols, "the entries of cells", resources);
  CellLists entries(static_cast<size_t>(cell_count));
  if (counts_only(resources)) return entries;
  std::iota(places.begin(), places.end(), 0U);
  ProgressMeter meter("entries", cell_count, resources);
  parallel_for(cell_count, meter, resources, [&](int64_t cell, int slot) {
    const auto [first, end] = std::equal_range(cells, cells + count, static_cast<uint32_t>(cell));
    const int64_t from = first - cells;
    const int64_t some = end - first;
    walk_keys(graph.rows, query_of_place(graph.centres, cell, floats.data() + slot * cols), places.data() + from, some,
              keys.data() + from);
    PartPlace* const own = sorted.data() + from;
    for (int64_t i = 0; i < some; ++i) own[i] = {parts[from + i], pack_neighbor(keys[from + i], places[from + i])};
    std::sort(own, own + some, [](const PartPlace& a, const PartPlace& b) {
      return a.part != b.part ? a.part < b.part : a.near < b.near;
    });
    PartPlace* const last =
        std::unique(own, own + some, [](const PartPlace& a, const PartPlace& b) { return a.part == b.part; });
    std::sort(own, last, [](const PartPlace& a, const PartPlace& b) { return a.near < b.near; });
    for (const PartPlace* one = own; one != last; ++one)
      entries[static_cast<size_t>(cell)].push_back(row_of(one->near));
    meter.add(1);
  });
  meter.finish();
  return entries;
}

// Whether the place is in the beam, or would not be: by products a place need not be near to itself.
bool finds(const WalkView& graph, const Walk& walk, uint32_t place) {
  const Beam& beam = walk.beam();
  for (int64_t i = 0; i < beam.size(); ++i) {
    if (beam.place(i) == place) return true;
  }
  if (graph.rows.kind != WalkKind::products) return false;
  uint32_t own = 0;
  std::vector<float> floats(static_cast<size_t>(graph.rows.values.cols()));
  walk_keys(graph.rows, query_of_place(graph.rows, place, floats.data()), &place, 1, &own);
  return !beam.would_take(own, place);
}

// Those of `places` that a walk towards them does not find, in their order.
std::vector<LostPlace> lost_of(const WalkView& graph, const std::vector<uint32_t>& places, const Resources& resources) {
  const auto count = static_cast<int64_t>(places.size());
  const int64_t floats = graph.rows.values.cols() * static_cast<int64_t>(sizeof(float));
  WalkSearch search(kSelfWalk, graph.degree, floats, count, resources);
  std::vector<std::vector<LostPlace>> found(static_cast<size_t>(search.slots()));
  ProgressMeter meter("find rows", count, resources);
  search.run(
      graph, count, meter, resources,
      [&](int64_t i, std::byte* memory) {
        return query_of_place(graph.rows, places[static_cast<size_t>(i)], reinterpret_cast<float*>(memory));
      },
      [&](int64_t i, const Walk& walk, int slot) {
        LostPlace lost{.place = places[static_cast<size_t>(i)]};
        if (finds(graph, walk, lost.place)) return;
        lost.count = std::min(kNearLost, walk.beam().size());
        for (int64_t b = 0; b < lost.count; ++b) lost.near[b] = walk.beam().place(b);
        found[static_cast<size_t>(slot)].push_back(lost);
      });
  meter.finish();
  std::vector<LostPlace> lost;
  for (const auto& some : found) lost.insert(lost.end(), some.begin(), some.end());
  std::sort(lost.begin(), lost.end(), [](const LostPlace& a, const LostPlace& b) { return a.place < b.place; });
  return lost;
}

class PlaceSearchCpu final : public PlaceSearch {
 public:
  HostArray<uint32_t> parts(const WalkView& graph, const Resources& resources) override {
    return ConnectedParts(graph, resources).take();
  }
  std::vector<LostPlace> lost_of(const WalkView& graph, const std::vector<uint32_t>& sought,
                                 const Resources& resources) override {
    return kith::lost_of(graph, sought, resources);
  }
  void lists_changed(const WalkView&, const std::vector<uint32_t>&) override {}
};

// Whether a list had room for the place.
bool add_edge(uint32_t* list, int64_t degree, uint32_t place) {
  uint32_t* const end = list + degree;
  uint32_t* const room = std::find(list, end, kNoEdge);
  if (room == end) return false;
  *room = place;
  return true;
}

// Edges to a lost place from the nearest that have room; calls use(place) for each of them. Returns how many there are.
template <typename ListOf, typename Use>
int64_t add_edges(const LostPlace& lost, const ListOf& list_of, int64_t degree, const Use& use) {
  int64_t added = 0;
  for (int64_t i = 0; i < lost.count && added < kRepairEdges; ++i) {
    if (!add_edge(list_of(lost.near[i]), degree, lost.place)) continue;
    ++added;
    use(lost.near[i]);
  }
  return added;
}

}  // namespace

void flatten(const CellLists& lists, WalkEntries& entries, const Resources& resources) {
  int64_t total = 0;
  for (const auto& list : lists) total += std::ssize(list);
  entries.offsets = HostArray<uint32_t>(std::ssize(lists) + 1, "the entries of cells", resources);
  entries.places = HostArray<uint32_t>(total, "the entries of cells", resources);
  if (counts_only(resources)) return;
  uint32_t at = 0;
  for (size_t cell = 0; cell < lists.size(); ++cell) {
    entries.offsets[static_cast<int64_t>(cell)] = at;
    for (const uint32_t place : lists[cell]) entries.places[at++] = place;
  }
  entries.offsets[std::ssize(lists)] = at;
}

int64_t mend_places(const PlacesToMend& places, std::vector<uint32_t> sought, PlaceSearch& search,
                    const Resources& resources) {
  for (int round = 0;; ++round) {
    const WalkView graph = places.view();
    const std::vector<LostPlace> lost = search.lost_of(graph, sought, resources);
    if (lost.empty() || round == kRepairRounds) return std::ssize(lost);
    sought.clear();
    std::vector<uint32_t> changed;
    for (const LostPlace& one : lost) {
      sought.push_back(one.place);
      const auto use = [&](uint32_t near) { changed.push_back(near); };
      if (add_edges(one, places.list_of, graph.degree, use) == 0) places.no_room(one.place);
    }
    search.lists_changed(places.view(), changed);
  }
}

std::unique_ptr<PlaceSearch> make_place_search_cpu() { return std::make_unique<PlaceSearchCpu>(); }

WalkEntries find_entries(const WalkView& graph, const uint32_t* cells, uint32_t* edges, PlaceSearch& search,
                         const Resources& resources) {
  const int64_t count = graph.rows.count();
  WalkEntries entries;
  CellLists lists;
  {
    const HostArray<uint32_t> parts = search.parts(graph, resources);
    lists = nearest_of_parts(graph, cells, parts.data(), resources);
    for (int64_t place = 0; place < count && !counts_only(resources); ++place) {
      entries.parts += parts[place] == static_cast<uint32_t>(place) ? 1 : 0;
    }
  }
  std::vector<uint32_t> sought(static_cast<size_t>(count));
  std::iota(sought.begin(), sought.end(), 0U);
  for (int round = 0;; ++round) {
    flatten(lists, entries, resources);
    WalkView with = graph;
    with.entry_offsets = entries.offsets.data();
    with.entries = entries.places.data();
    const std::vector<LostPlace> lost = search.lost_of(with, sought, resources);
    entries.lost = std::ssize(lost);
    if (lost.empty() || round == kRepairRounds) break;
    // What is mended for one place may hide another near by.
    std::vector<uint64_t> touched(static_cast<size_t>(divide_up(count, 64)), 0);  // a bit for each place
    const auto mark = [&](uint32_t place) { touched[place / 64] |= uint64_t{1} << place % 64; };
    const auto touch = [&](uint32_t place) {
      mark(place);
      const uint32_t* const list = edges + int64_t{place} * graph.degree;
      for (int64_t i = 0; i < graph.degree && list[i] != kNoEdge; ++i) mark(list[i]);
    };
    std::vector<int64_t> added(lists.size(), 0);
    std::vector<uint32_t> changed;
    for (const LostPlace& one : lost) {
      const uint32_t cell = cells[one.place];
      touch(one.place);
      const auto list_of = [&](uint32_t near) { return edges + near * graph.degree; };
      const int64_t edges_there = add_edges(one, list_of, graph.degree, [&](uint32_t near) {
        touch(near);
        changed.push_back(near);
      });
      if (edges_there == 0 && added[cell]++ < kMostRepairs) lists[cell].push_back(one.place);
    }
    search.lists_changed(graph, changed);
    sought.clear();
    for (size_t word = 0; word < touched.size(); ++word) {
      for (uint64_t bits = touched[word]; bits != 0; bits &= bits - 1) {
        sought.push_back(static_cast<uint32_t>(word * 64 + static_cast<size_t>(std::countr_zero(bits))));
      }
    }
  }
  return entries;
}

}  // namespace kith
