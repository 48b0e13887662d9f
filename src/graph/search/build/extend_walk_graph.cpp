#include "graph/search/build/extend_walk_graph.hpp"

#include <kith/error.hpp>

#include "core/memory_budget.hpp"
#include "core/ordered_key.hpp"
#include "core/start_beside.hpp"
#include "core/within_limits.hpp"
#include "graph/search/build/build_walk_graph.hpp"
#include "graph/search/build/link_places.hpp"
#include "graph/search/build/prune_places.hpp"
#include "graph/search/build/stage_times.hpp"
#include "graph/search/build/walk_build_gpu.hpp"
#include "graph/search/build/walk_entries.hpp"
#include "graph/search/graph/walk_cells.hpp"
#include "graph/search/walk/walk_search.hpp"
#include "graph/search/walk/walk_task_cuda.hpp"

#include <algorithm>
#include <cstring>
#include <future>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kMostNewShare = 4;  // at most one of this many rows may be new
constexpr int64_t kMostRowsPerCell = 2 * kRowsPerWalkCell;
constexpr int64_t kNearNew = 32;  // candidates among the new rows
constexpr WalkParams kLinkWalk{.beam = 64, .width = 2};
constexpr int64_t kTaskTargets = 64;

// A GPU extends the graph if copying it there, at this many bytes a second, takes less time than the CPU's threads, at
// the seconds per row below. Where it has the graph, its launches and waits count, if they take less than the copy.
constexpr double kBytesToGpu = 2e10;
constexpr double kLaunchSeconds = 0.02;
constexpr double kSecondsOfRow = 250e-6;

// `there`: the GPU has the graph. Memory limits were told of a CPU's work.
bool grows_on_gpu(const WalkGraph& graph, int64_t rows, bool there, const Resources& resources) {
  if (resources.device().kind != DeviceKind::cuda || counts_memory(resources)) return false;
  const WalkCoder& coder = graph.coder;
  if (!coder.has_codes() || coder.packed()) return false;
  const int64_t stride = coder.code_columns();
  if (!suits_walk_cuda(graph.order.places() + rows, kLinkWalk.beam, 0, graph.degree, stride)) return false;
  const auto bytes = static_cast<double>(graph.order.places() * (stride + 4 * graph.degree));
  const double copy = bytes / kBytesToGpu;
  const double first = there ? std::min(copy, kLaunchSeconds) : copy;
  return static_cast<double>(rows) * kSecondsOfRow / resources.threads() > first;
}

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
      graph, fresh.count(), meter, resources,
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

// The same by a GPU, which keeps the codes behind the graph's.
std::vector<NearPlaces> near_places(WalkBuildGpu& gpu, const WalkView& graph, const WalkRows& fresh,
                                    const Resources& resources) {
  std::vector<NearPlaces> near(static_cast<size_t>(fresh.count()));
  gpu.take_more(graph, reinterpret_cast<const std::byte*>(fresh.values.data()), fresh.count());
  const HostArray<uint32_t> beams = gpu.near_more(graph, fresh.count(), kLinkWalk, resources);
  const auto row_bytes = static_cast<size_t>(fresh.row_bytes());
  for_places(fresh.count(), kTaskTargets, "link", resources, [&](int64_t i, int) {
    NearPlaces& own = near[static_cast<size_t>(i)];
    const uint32_t* const begin = beams.data() + i * kLinkWalk.beam;
    const uint32_t* const end = std::find(begin, begin + kLinkWalk.beam, kNoWalkPlace);
    own.places.assign(begin, end);
    // No place is nearer than one with the same code, and there is one such place at most.
    if (begin != end && std::memcmp(graph.rows.values.row(*begin), fresh.values.row(i), row_bytes) == 0) {
      own.same = *begin;
    }
  });
  return near;
}

// Copies the lists of a graph, which may be in pages, to a GPU.
void bring_lists(const WalkLists& lists, WalkBuildGpu& gpu, const Resources& resources) {
  if (lists.flat() != nullptr) return gpu.take_edges(lists.flat());
  const HostArray<uint32_t> together(lists.places() * lists.degree(), "the graph's edges", resources);
  lists.copy_to(together.data(), resources);
  gpu.take_edges(together.data());
}

// Candidates of all new places in rows of one length.
HostArray<int64_t> padded(const std::vector<std::vector<uint32_t>>& candidates, const Resources& resources) {
  size_t most = 1;
  for (const auto& some : candidates) most = std::max(most, some.size());
  HostArray<int64_t> all(std::ssize(candidates) * static_cast<int64_t>(most), "candidates for neighbours", resources);
  for_places(std::ssize(candidates), kTaskTargets, "link", resources, [&](int64_t i, int) {
    const std::vector<uint32_t>& some = candidates[static_cast<size_t>(i)];
    int64_t* const to = all.data() + i * static_cast<int64_t>(most);
    std::fill(std::copy(some.begin(), some.end(), to), to + most, int64_t{-1});
  });
  return all;
}

// Puts lists that a GPU has changed where they belong.
void take_lists(const ListsOfPlaces& linked, int64_t degree, ChangedLists& lists, const Resources& resources) {
  lists.change(linked.places);
  for_places(linked.places.size(), kTaskTargets, "link", resources, [&](int64_t i, int) {
    std::copy_n(linked.lists.data() + i * degree, degree, lists.changed(linked.places[i]));
  });
}

// The order with rows that look like some that are there: places are counted anew.
PlaceOrder joined_order(const PlaceOrder& before, const PlaceOrder& more, const std::vector<uint32_t>& place_of_more,
                        int64_t places, const Resources& resources) {
  HostArray<uint32_t> place_of(before.row_count() + more.row_count(), "the places of rows", resources);
  const PlaceRows old_rows = before.view();
  for (int64_t place = 0; place < before.places(); ++place) {
    old_rows.visit(static_cast<uint32_t>(place), [&](uint32_t row) { place_of[row] = static_cast<uint32_t>(place); });
  }
  const PlaceRows rows = more.view();
  for (int64_t i = 0; i < more.places(); ++i) {
    rows.visit(static_cast<uint32_t>(i),
               [&](uint32_t row) { place_of[before.row_count() + row] = place_of_more[static_cast<size_t>(i)]; });
  }
  return PlaceOrder::from_places(place_of, places, resources);
}

// New places as rows whose neighbours among themselves are looked for: codes of four bits as the bytes that they stand
// for.
class ComparedRows {
 public:
  ComparedRows(const WalkRows& rows, const Resources& resources) : rows_(rows) {
    if (!rows.packed) return;
    const int64_t columns = rows.code_columns();
    bytes_ = HostArray<int8_t>(rows.count() * columns, "the codes of new rows", resources);
    rows_ = {rows.kind, rows.key, {bytes_.data(), DType::i8, {rows.count(), columns, columns}}};
    for (int64_t i = 0; i < rows.count() && !counts_only(resources); ++i) {
      unpack_nibbles(reinterpret_cast<const int8_t*>(rows.values.row(i)), columns, bytes_.data() + i * columns);
    }
  }
  const WalkRows& rows() const { return rows_; }

 private:
  WalkRows rows_;
  HostArray<int8_t> bytes_;
};

struct Offer {
  uint32_t target;
  uint64_t edge;  // pack_neighbor(key, who offers itself)
};

// The lists of new places, and those of all that they have chosen.
class Linker {
 public:
  Linker(const WalkRows& rows, int64_t degree, ChangedLists& lists, int64_t before, const Resources& resources)
      : rows_(rows), degree_(degree), lists_(lists), before_(before), resources_(resources) {}

  // `candidates`: of each new place.
  void link(const std::vector<std::vector<uint32_t>>& candidates) {
    const auto count = static_cast<int64_t>(candidates.size());
    size_t most = 0;
    for (const auto& some : candidates) most = std::max(most, some.size());
    // What each new place has chosen, in order, and so what the others are offered.
    std::vector<std::vector<uint64_t>> chosen(candidates.size());
    {
      const PruneRooms rooms(rows_, degree_, static_cast<int64_t>(most), resources_);
      for_places(count, kTaskTargets, "link", resources_, [&](int64_t i, int slot) {
        PruneRoom& own = rooms.of(slot);
        const std::vector<uint32_t>& others = candidates[static_cast<size_t>(i)];
        own.pruner.sort_by_key(static_cast<uint32_t>(before_ + i), others.data(), std::ssize(others),
                               own.sorted.data());
        const int64_t kept = own.pruner.prune(own.sorted.data(), std::ssize(others));
        chosen[static_cast<size_t>(i)].assign(own.sorted.data(), own.sorted.data() + kept);
      });
    }
    std::vector<Offer> all;
    for (int64_t i = 0; i < count; ++i) {
      const auto place = static_cast<uint32_t>(before_ + i);
      for (const uint64_t edge : chosen[static_cast<size_t>(i)]) {
        all.push_back({row_of(edge), pack_neighbor(ordered_of(edge), place)});
      }
    }
    sort(all);
    std::vector<uint32_t> targets;
    targets.reserve(all.size());
    for (const Offer& one : all) targets.push_back(one.target);
    lists_.change(targets);
    for (int64_t i = 0; i < count; ++i) {
      const std::vector<uint64_t>& own = chosen[static_cast<size_t>(i)];
      set_list(static_cast<uint32_t>(before_ + i), own.data(), std::ssize(own));
    }
    take(all);
  }

 private:
  // By target, then by edge: offers to neighbouring targets together, each of these heaps by a thread.
  void sort(std::vector<Offer>& all) const {
    constexpr size_t kFew = 1 << 14;
    constexpr int64_t kHeaps = 512;
    const auto before = [](const Offer& a, const Offer& b) {
      return std::tie(a.target, a.edge) < std::tie(b.target, b.edge);
    };
    if (all.size() <= kFew) return std::sort(all.begin(), all.end(), before);
    std::vector<size_t> ends(kHeaps + 1, 0);
    const auto heap_of = [&](const Offer& one) {
      return static_cast<size_t>(int64_t{one.target} * kHeaps / rows_.count());
    };
    for (const Offer& one : all) ++ends[heap_of(one) + 1];
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<Offer> sorted(all.size());
    std::vector<size_t> next = ends;
    for (const Offer& one : all) sorted[next[heap_of(one)]++] = one;
    for_places(kHeaps, 1, "link", resources_, [&](int64_t heap, int) {
      const auto first = sorted.begin() + static_cast<int64_t>(ends[static_cast<size_t>(heap)]);
      const auto end = sorted.begin() + static_cast<int64_t>(ends[static_cast<size_t>(heap) + 1]);
      std::sort(first, end, before);
    });
    all = std::move(sorted);
  }

  void set_list(uint32_t place, const uint64_t* kept, int64_t count) const {
    uint32_t* const list = lists_.changed(place);
    for (int64_t i = 0; i < degree_; ++i) list[i] = i < count ? row_of(kept[i]) : kNoEdge;
  }

  void take(const std::vector<Offer>& all) const {
    std::vector<size_t> begins;
    size_t longest = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i == 0 || all[i].target != all[i - 1].target) begins.push_back(i);
      longest = std::min(std::max(longest, i + 1 - begins.back()), static_cast<size_t>(kMostOffers));
    }
    begins.push_back(all.size());
    const PruneRooms rooms(rows_, degree_, static_cast<int64_t>(longest) + degree_, resources_);
    for_places(std::ssize(begins) - 1, kTaskTargets, "link", resources_, [&](int64_t t, int slot) {
      PruneRoom& own = rooms.of(slot);
      const size_t first = begins[static_cast<size_t>(t)];
      const size_t end = begins[static_cast<size_t>(t) + 1];
      const uint32_t target = all[first].target;
      uint32_t* const list = lists_.changed(target);
      uint32_t* const others = own.others.data();
      uint32_t* last = std::copy(list, std::find(list, list + degree_, kNoEdge), others);
      for (size_t i = first; i < std::min(end, first + static_cast<size_t>(kMostOffers)); ++i) {
        const uint32_t other = row_of(all[i].edge);
        if (std::find(others, last, other) == last) *last++ = other;
      }
      const int64_t count = last - others;
      if (count <= degree_) {
        std::copy(others, last, list);
        return;
      }
      own.pruner.sort_by_key(target, others, count, own.sorted.data());
      set_list(target, own.sorted.data(), own.pruner.prune(own.sorted.data(), count));
    });
  }

  const WalkRows& rows_;
  const int64_t degree_;
  ChangedLists& lists_;
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
    const PlaceOrder alike = PlaceOrder::by_first_row(nullptr, each, rows, used);
    const HostArray<std::byte> distinct(rows * each, "the graph's codes", used);
    const HostArray<uint32_t> place_of(graph.rows() + rows, "the places of rows", used);
    const HostArray<std::byte> codes(GrowingArray<std::byte>::capacity_for(places * each), "the graph's codes", used);
    const HostArray<uint32_t> edges(round_up(places, kPageLists) * graph.degree, "the graph's edges", used);
    const HostArray<uint32_t> offsets(GrowingArray<uint32_t>::capacity_for(places + 1), "the places of rows", used);
    const HostArray<uint32_t> order(GrowingArray<uint32_t>::capacity_for(place_of.size()), "the places of rows", used);
    const WalkRows fresh = graph.coder.rows_of(counted_only_memory(), rows);
    const auto floats = fresh.values.cols() * static_cast<int64_t>(sizeof(float));
    const WalkSearch walks(kLinkWalk, graph.degree, floats, rows, used);
    const int64_t k = std::clamp<int64_t>(rows - 1, 1, kNearNew);
    Neighbors nearest(rows, k, used);
    const ComparedRows among(fresh, used);
    if (rows > 1) find_candidates(among.rows().values, metric_of(fresh), 0, nearest.view(), used);
    const PruneRooms rooms(fresh, graph.degree, std::min(rows, kMostOffers) + kLinkWalk.beam + graph.degree, used);
  });
}

std::shared_ptr<const WalkGraph> extend_walk_graph(const WalkGraph& graph, const std::byte* codes, int64_t rows,
                                                   int64_t clipped, uint64_t seed, const Resources& given,
                                                   WalkArraysOnGpu* arrays) try {
  const Resources resources = given.with_device(Device::cpu()).with_progress({});
  WalkArraysOnGpu there = arrays == nullptr ? WalkArraysOnGpu() : std::exchange(*arrays, WalkArraysOnGpu());
  if (there.device != given.device().index) there = WalkArraysOnGpu();
  const bool on_gpu = grows_on_gpu(graph, rows, there.there(), given);
  const Resources asked = on_gpu ? given.with_progress({}) : resources;
  StageTimes times;
  const int64_t before = graph.order.places();
  const int64_t each = graph.coder.place_bytes();
  const PlaceOrder alike = PlaceOrder::by_first_row(codes, each, rows, resources);
  HostArray<std::byte> distinct(alike.places() * each, "the graph's codes", resources);
  for_places(alike.places(), kTaskTargets, "link", resources, [&](int64_t i, int) {
    std::memcpy(distinct.data() + i * each, codes + alike.first_row(i) * each, static_cast<size_t>(each));
  });
  times.done("places");
  const WalkView old = graph.view(nullptr, 0);
  const WalkRows looked_for = graph.coder.rows_of(distinct.data(), alike.places());
  const std::unique_ptr<WalkBuildGpu> gpu =
      on_gpu ? make_walk_build_gpu(old.rows, graph.degree, asked, alike.places(), there) : nullptr;
  if (gpu != nullptr && !there.there()) bring_lists(graph.edges, *gpu, resources);
  times.done("copies to a GPU");
  std::vector<NearPlaces> near =
      gpu == nullptr ? near_places(old, looked_for, resources) : near_places(*gpu, old, looked_for, resources);
  times.done("walks");

  // The new places, in the order of their first rows.
  std::vector<uint32_t> place_of_alike;
  std::vector<const std::byte*> more;
  std::vector<std::vector<uint32_t>> candidates;
  for (int64_t i = 0; i < alike.places(); ++i) {
    NearPlaces& own = near[static_cast<size_t>(i)];
    uint32_t place = own.same;
    if (place == kNoWalkPlace) {
      place = static_cast<uint32_t>(before + std::ssize(more));
      more.push_back(distinct.data() + i * each);
      candidates.push_back(std::move(own.places));
    }
    place_of_alike.push_back(place);
  }
  const auto fresh = static_cast<int64_t>(more.size());
  const int64_t places = before + fresh;
  PlaceOrder order = graph.order;
  GrowingArray<std::byte> all_codes = graph.codes;
  const Resources beside = resources.with_cancel({});  // which is asked for on the caller's thread alone
  ChangedLists lists(graph.edges, places, beside);
  const auto copy = [&] {
    all_codes = graph.codes.appended(fresh * each, "the graph's codes", beside, [&](std::byte* to) {
      for_places(fresh, kTaskTargets, "link", beside, [&](int64_t i, int) {
        std::memcpy(to + i * each, more[static_cast<size_t>(i)], static_cast<size_t>(each));
      });
    });
    order = fresh == alike.places() ? graph.order.followed_by(alike, beside)
                                    : joined_order(graph.order, alike, place_of_alike, places, beside);
    if (gpu != nullptr) lists.expect(fresh * graph.degree / 2);
  };
  // Copies of what the new graph does not share with this one, beside a GPU's work.
  std::future<void> copied;
  if (gpu != nullptr && fresh == alike.places()) {
    copied = start_beside(copy);
  } else {
    copy();
  }
  WalkGraphCounts counts = graph.counts;
  counts.clipped += clipped;
  times.done("copies");
  if (fresh > 0) {
    // Rows that are all new are together already.
    const std::byte* const fresh_codes =
        fresh == alike.places() ? distinct.data() : all_codes.data() + before * each;
    if (fresh > 1) {
      const ComparedRows compared(graph.coder.rows_of(fresh_codes, fresh), resources);
      const WalkRows& among = compared.rows();
      const int64_t k = std::min(kNearNew, fresh - 1);
      Neighbors nearest(fresh, k, resources);
      find_candidates(among.values, metric_of(among), seed, nearest.view(), asked);
      for_places(fresh, kTaskTargets, "link", resources, [&](int64_t i, int) {
        std::vector<uint32_t>& own = candidates[static_cast<size_t>(i)];
        own.reserve(own.size() + static_cast<size_t>(k));
        for (int64_t j = 0; j < k; ++j) {
          const int64_t other = nearest.ids(i)[j];
          if (other >= 0) own.push_back(static_cast<uint32_t>(before + other));
        }
      });
    }
    times.done("candidates");
    ListsOfPlaces linked;
    if (gpu != nullptr) {
      if (fresh < alike.places()) gpu->take_more(old, fresh_codes, fresh);
      linked = gpu->link_more(places, fresh, padded(candidates, resources), resources);
      times.done("links");
    }
    if (copied.valid()) copied.get();
    const WalkRows all = graph.coder.rows_of(all_codes.data(), places);
    if (gpu == nullptr) {
      Linker(all, graph.degree, lists, before, resources).link(candidates);
    } else {
      take_lists(linked, graph.degree, lists, resources);
    }
    times.done("lists");
    const auto view = [&] {
      WalkView now = graph.view(nullptr, 0);
      now.rows = all;
      lists.show_in(now);
      return now;
    };
    std::vector<uint32_t> sought(static_cast<size_t>(fresh));
    std::iota(sought.begin(), sought.end(), static_cast<uint32_t>(before));
    const std::unique_ptr<PlaceSearch> threads = gpu == nullptr ? make_place_search_cpu() : nullptr;
    PlaceSearch& search = gpu == nullptr ? *threads : *gpu;
    const PlacesToMend mended{.view = view, .list_of = [&](uint32_t place) { return lists.change(place); }};
    counts.lost += mend_places(mended, std::move(sought), search, resources);
    times.done("mended");
  }
  if (copied.valid()) copied.get();
  if (arrays != nullptr && gpu != nullptr) *arrays = gpu->give(places);
  times.tell("rows linked into a graph", given);
  return std::make_shared<const WalkGraph>(WalkGraph{graph.coder, graph.degree, std::move(order), all_codes,
                                                     std::move(lists).take(), graph.cells, graph.centres,
                                                     graph.entry_offsets, graph.entries, counts, graph.packed_centres});
} catch (const OutOfMemory&) {
  // Threads make the same, with memory that was counted.
  if (given.device().kind != DeviceKind::cuda) throw;
  return extend_walk_graph(graph, codes, rows, clipped, seed, given.with_device(Device::cpu()));
}

}  // namespace kith
