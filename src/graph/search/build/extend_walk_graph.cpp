#include "graph/search/build/extend_walk_graph.hpp"

#include <kith/knn_graph.hpp>

#include "core/memory_budget.hpp"
#include "core/ordered_key.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "graph/search/build/prune.hpp"
#include "graph/search/build/walk_entries.hpp"
#include "graph/search/graph/walk_cells.hpp"
#include "graph/search/walk/walk_search.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kMostNewShare = 4;  // one of so many rows may be new
constexpr int64_t kMostRowsPerCell = 2 * kRowsPerWalkCell;
constexpr int64_t kNearNew = 32;  // candidates among the new rows
constexpr WalkWish kLinkWalk{.beam = 64, .width = 2};
constexpr int64_t kTaskTargets = 64;

// What a walk towards a new place has found.
struct NearPlaces {
  uint32_t same = kNoWalkPlace;  // a place with the same code
  std::vector<uint32_t> places;
};

std::vector<NearPlaces> near_places(const WalkView& graph, const WalkRows& fresh, const Resources& resources) {
  std::vector<NearPlaces> near(static_cast<size_t>(fresh.count()));
  const int64_t floats = fresh.values.cols() * static_cast<int64_t>(sizeof(float));
  WalkSearch search(kLinkWalk, graph.degree, floats, fresh.count(), resources);
  ProgressMeter meter("link", fresh.count(), resources);
  const auto row_bytes = static_cast<size_t>(fresh.row_bytes());
  search.run(
      graph, nullptr, fresh.count(), meter, resources,
      [&](int64_t i, std::byte* memory) { return query_of_place(fresh, i, reinterpret_cast<float*>(memory)); },
      [&](int64_t i, const Walk& walk, int) {
        NearPlaces& own = near[static_cast<size_t>(i)];
        for (int64_t b = 0; b < walk.beam().size(); ++b) {
          const uint32_t place = walk.beam().place(b);
          if (walk.beam().key(b) == walk.beam().key(0) &&
              std::memcmp(graph.rows.values.row(place), fresh.values.row(i), row_bytes) == 0) {
            own.same = place;
          }
          own.places.push_back(place);
        }
      });
  meter.finish();
  return near;
}

HostArray<std::byte> joined_codes(const WalkGraph& graph, const std::vector<const std::byte*>& more,
                                  const Resources& resources) {
  const int64_t each = graph.coder.place_bytes();
  const int64_t before = graph.order.places() * each;
  HostArray<std::byte> codes(before + std::ssize(more) * each, "the graph's codes", resources);
  std::memcpy(codes.data(), graph.codes.data(), static_cast<size_t>(before));
  for (size_t i = 0; i < more.size(); ++i) {
    std::memcpy(codes.data() + before + static_cast<int64_t>(i) * each, more[i], static_cast<size_t>(each));
  }
  return codes;
}

struct Offer {
  uint32_t target;
  uint64_t edge;  // pack_neighbor(key, who offers itself)
};

// A pruner and memory for one thread.
struct ExtendScratch {
  ExtendScratch(const WalkRows& rows, int64_t degree, int64_t most, const Resources& resources)
      : pruner(rows, degree, most, resources), sorted(most, "candidates for neighbours", resources) {}
  Pruner pruner;
  HostArray<uint64_t> sorted;
};

// The lists of new places, and those of all that they have chosen.
class Linker {
 public:
  Linker(const WalkRows& rows, int64_t degree, uint32_t* edges, int64_t before, const Resources& resources)
      : rows_(rows), degree_(degree), edges_(edges), before_(before), resources_(resources) {}

  // `candidates`: of each new place.
  void link(const std::vector<std::vector<uint32_t>>& candidates) {
    const auto count = static_cast<int64_t>(candidates.size());
    size_t most = 0;
    for (const auto& some : candidates) most = std::max(most, some.size());
    auto scratch = scratch_for(static_cast<int64_t>(most));
    std::vector<std::vector<Offer>> offers(candidates.size());
    for_all(count, [&](int64_t i, int slot) {
      ExtendScratch& own = *scratch[static_cast<size_t>(slot)];
      const std::vector<uint32_t>& others = candidates[static_cast<size_t>(i)];
      const auto place = static_cast<uint32_t>(before_ + i);
      own.pruner.sort_by_key(place, others.data(), std::ssize(others), own.sorted.data());
      const int64_t kept = own.pruner.prune(own.sorted.data(), std::ssize(others));
      set_list(place, own.sorted.data(), kept);
      for (int64_t k = 0; k < kept; ++k) {
        const uint64_t edge = own.sorted[k];
        offers[static_cast<size_t>(i)].push_back({row_of(edge), pack_neighbor(ordered_of(edge), place)});
      }
    });
    std::vector<Offer> all;
    for (const auto& some : offers) all.insert(all.end(), some.begin(), some.end());
    std::sort(all.begin(), all.end(),
              [](const Offer& a, const Offer& b) { return std::tie(a.target, a.edge) < std::tie(b.target, b.edge); });
    take(all);
  }

 private:
  std::vector<std::unique_ptr<ExtendScratch>> scratch_for(int64_t most) const {
    std::vector<std::unique_ptr<ExtendScratch>> scratch;
    for (int i = 0; i < resources_.threads(); ++i) {
      scratch.push_back(std::make_unique<ExtendScratch>(rows_, degree_, most, resources_));
    }
    return scratch;
  }

  template <typename Work>
  void for_all(int64_t count, const Work& work) const {
    ProgressMeter meter("link", count, resources_);
    parallel_for(divide_up(count, kTaskTargets), meter, resources_, [&](int64_t task, int slot) {
      const int64_t end = std::min((task + 1) * kTaskTargets, count);
      for (int64_t i = task * kTaskTargets; i < end; ++i) work(i, slot);
      meter.add(end - task * kTaskTargets);
    });
    meter.finish();
  }

  uint32_t* list_of(uint32_t place) const { return edges_ + static_cast<int64_t>(place) * degree_; }
  void set_list(uint32_t place, const uint64_t* kept, int64_t count) const {
    for (int64_t i = 0; i < degree_; ++i) list_of(place)[i] = i < count ? row_of(kept[i]) : kNoEdge;
  }

  void take(const std::vector<Offer>& all) const {
    std::vector<size_t> begins;
    size_t longest = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i == 0 || all[i].target != all[i - 1].target) begins.push_back(i);
      longest = std::max(longest, i + 1 - begins.back());
    }
    begins.push_back(all.size());
    const auto scratch = scratch_for(static_cast<int64_t>(longest) + degree_);
    for_all(std::ssize(begins) - 1, [&](int64_t t, int slot) {
      ExtendScratch& own = *scratch[static_cast<size_t>(slot)];
      const size_t first = begins[static_cast<size_t>(t)];
      const size_t end = begins[static_cast<size_t>(t) + 1];
      const uint32_t target = all[first].target;
      uint32_t* const list = list_of(target);
      std::vector<uint32_t> others(list, std::find(list, list + degree_, kNoEdge));
      for (size_t i = first; i < end; ++i) {
        const uint32_t other = row_of(all[i].edge);
        if (std::find(others.begin(), others.end(), other) == others.end()) others.push_back(other);
      }
      if (std::ssize(others) <= degree_) {
        std::copy(others.begin(), others.end(), list);
        return;
      }
      own.pruner.sort_by_key(target, others.data(), std::ssize(others), own.sorted.data());
      set_list(target, own.sorted.data(), own.pruner.prune(own.sorted.data(), std::ssize(others)));
    });
  }

  const WalkRows& rows_;
  const int64_t degree_;
  uint32_t* const edges_;
  const int64_t before_;
  const Resources& resources_;
};

}  // namespace

bool can_extend(const WalkGraph& graph, int64_t rows) {
  if (graph.coder.kind() == WalkKind::products || rows > graph.rows() / kMostNewShare) return false;
  return graph.cells == kMostWalkCells || graph.rows() + rows <= kMostRowsPerCell * graph.cells;
}

// All new rows may be places, each chosen by all others.
Footprint extend_footprint(const WalkGraph& graph, int64_t rows, const Resources& resources) {
  return footprint_of_call(resources, [&](const Resources& given) {
    const Resources used = given.with_device(Device::cpu());
    const int64_t places = graph.order.places() + rows;
    const int64_t each = graph.coder.place_bytes();
    const HostArray<uint32_t> no_cells(rows, "the cells of rows", used);
    const PlaceOrder alike(nullptr, each, rows, no_cells.data(), used);
    const HostArray<std::byte> distinct(rows * each, "the graph's codes", used);
    const HostArray<uint32_t> place_of(graph.rows() + rows, "the places of rows", used);
    const HostArray<std::byte> codes(places * each, "the graph's codes", used);
    const HostArray<uint32_t> edges(places * graph.degree, "the graph's edges", used);
    const HostArray<std::byte> centres(graph.centres.size(), "the centres of a graph's cells", used);
    const HostArray<uint32_t> cells(graph.entry_offsets.size() + graph.entries.size(), "the entries of cells", used);
    const HostArray<uint32_t> order(places + 1 + place_of.size(), "the places of rows", used);
    const WalkRows fresh = graph.coder.rows_of(counted_only_memory(), rows);
    const auto floats = fresh.values.cols() * static_cast<int64_t>(sizeof(float));
    const WalkSearch walks(kLinkWalk, graph.degree, floats, rows, used);
    const int64_t k = std::clamp<int64_t>(rows - 1, 1, kNearNew);
    Neighbors nearest(rows, k, used);
    const KnnGraphParams params{.k = k, .metric = metric_of(fresh), .check_finite = false, .recall = 0.95};
    if (rows > 1)
      count_call(used, [&](const Resources& inner) { knn_graph(fresh.values, nearest.view(), params, inner); });
    std::vector<std::unique_ptr<ExtendScratch>> scratch;
    for (int i = 0; i < used.threads(); ++i) {
      scratch.push_back(std::make_unique<ExtendScratch>(fresh, graph.degree, rows + graph.degree, used));
    }
  });
}

std::shared_ptr<const WalkGraph> extend_walk_graph(const WalkGraph& graph, const std::byte* codes, int64_t rows,
                                                   int64_t clipped, uint64_t seed, const Resources& given) {
  const Resources resources = given.with_device(Device::cpu()).with_progress({});
  const int64_t before = graph.order.places();
  const int64_t each = graph.coder.place_bytes();
  const HostArray<uint32_t> no_cells(rows, "the cells of rows", resources);
  std::fill(no_cells.begin(), no_cells.end(), 0U);
  const PlaceOrder alike(codes, each, rows, no_cells.data(), resources);
  HostArray<std::byte> distinct(alike.places() * each, "the graph's codes", resources);
  for (int64_t i = 0; i < alike.places(); ++i) {
    std::memcpy(distinct.data() + i * each, codes + alike.first_row(i) * each, static_cast<size_t>(each));
  }
  std::vector<NearPlaces> near =
      near_places(graph.view(nullptr, 0), graph.coder.rows_of(distinct.data(), alike.places()), resources);

  HostArray<uint32_t> place_of(graph.rows() + rows, "the places of rows", resources);
  const PlaceRows old_rows = graph.order.view();
  for (int64_t place = 0; place < before; ++place) {
    old_rows.visit(static_cast<uint32_t>(place), [&](uint32_t row) { place_of[row] = static_cast<uint32_t>(place); });
  }
  std::vector<const std::byte*> more;
  std::vector<std::vector<uint32_t>> candidates;
  const PlaceRows alike_rows = alike.view();
  for (int64_t i = 0; i < alike.places(); ++i) {
    NearPlaces& own = near[static_cast<size_t>(i)];
    uint32_t place = own.same;
    if (place == kNoWalkPlace) {
      place = static_cast<uint32_t>(before + std::ssize(more));
      more.push_back(distinct.data() + i * each);
      candidates.push_back(std::move(own.places));
    }
    alike_rows.visit(static_cast<uint32_t>(i), [&](uint32_t row) { place_of[graph.rows() + row] = place; });
  }
  const auto fresh = static_cast<int64_t>(more.size());
  const int64_t places = before + fresh;
  HostArray<std::byte> all_codes = joined_codes(graph, more, resources);
  HostArray<uint32_t> edges(places * graph.degree, "the graph's edges", resources);
  std::copy_n(graph.edges.data(), before * graph.degree, edges.data());
  const WalkRows all = graph.coder.rows_of(all_codes.data(), places);
  WalkFacts facts = graph.facts;
  facts.clipped += clipped;
  const auto copied = [&](const auto& array, std::string_view purpose) {
    std::remove_cvref_t<decltype(array)> copy(array.size(), purpose, resources);
    std::copy_n(array.data(), array.size(), copy.data());
    return copy;
  };
  HostArray<std::byte> centres = copied(graph.centres, "the centres of a graph's cells");
  HostArray<uint32_t> entry_offsets = copied(graph.entry_offsets, "the entries of cells");
  HostArray<uint32_t> entries = copied(graph.entries, "the entries of cells");
  if (fresh > 0) {
    if (fresh > 1) {
      const WalkRows among = graph.coder.rows_of(all_codes.data() + before * each, fresh);
      const int64_t k = std::min(kNearNew, fresh - 1);
      Neighbors nearest(fresh, k, resources);
      knn_graph(among.values, nearest.view(),
                {.k = k, .metric = metric_of(among), .check_finite = false, .recall = 0.95, .seed = seed}, resources);
      for (int64_t i = 0; i < fresh * k; ++i) {
        const int64_t other = nearest.ids()[i];
        if (other >= 0) candidates[static_cast<size_t>(i / k)].push_back(static_cast<uint32_t>(before + other));
      }
    }
    Linker(all, graph.degree, edges.data(), before, resources).link(candidates);
    WalkView view = graph.view(nullptr, 0);
    view.rows = all;
    view.edges = edges.data();
    std::vector<uint32_t> sought(static_cast<size_t>(fresh));
    for (int64_t i = 0; i < fresh; ++i) sought[static_cast<size_t>(i)] = static_cast<uint32_t>(before + i);
    facts.lost += mend_places(view, std::move(sought), edges.data(), resources);
  }
  return std::make_shared<const WalkGraph>(WalkGraph{
      graph.coder, graph.degree, PlaceOrder::from_places(place_of, places, resources), std::move(all_codes),
      std::move(edges), graph.cells, std::move(centres), std::move(entry_offsets), std::move(entries), facts});
}

}  // namespace kith
