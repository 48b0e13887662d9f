#include "graph/search/build/link_places.hpp"

#include "core/ordered_key.hpp"
#include "core/within_limits.hpp"
#include "graph/search/build/prune_places.hpp"
#include "graph/search/graph/walk_view.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kTaskPlaces = 256;

// What each place has chosen: pack_neighbor(key, other), kPadding behind the last.
class Choices {
 public:
  Choices(int64_t places, int64_t degree, const Resources& resources)
      : degree_(degree), chosen_(places * degree, "edges of a graph", resources) {}
  uint64_t* of(int64_t place) const { return chosen_.data() + place * degree_; }
  int64_t count(int64_t place) const { return std::find(of(place), of(place) + degree_, kPadding) - of(place); }

 private:
  int64_t degree_;
  HostArray<uint64_t> chosen_;
};

// The edges by target.
class Offers {
 public:
  Offers(const Choices& choices, int64_t places, int64_t degree, const Resources& resources)
      : ends_(places + 1, "edges by target", resources), sources_(places * degree, "edges by target", resources) {
    if (counts_only(resources)) return;
    std::fill(ends_.begin(), ends_.end(), int64_t{0});
    for (int64_t place = 0; place < places; ++place) {
      visit(choices, place, [&](uint64_t edge) { ++ends_[row_of(edge) + 1]; });
    }
    for (int64_t place = 0; place < places; ++place) ends_[place + 1] += ends_[place];
    // Each place's end becomes its begin, and grows to its end again.
    for (int64_t place = places; place > 0; --place) ends_[place] = ends_[place - 1];
    for (int64_t place = 0; place < places; ++place) {
      visit(choices, place, [&](uint64_t edge) {
        sources_[ends_[row_of(edge) + 1]++] = pack_neighbor(ordered_of(edge), static_cast<uint32_t>(place));
      });
    }
  }

  uint64_t* of(int64_t place) const { return sources_.data() + ends_[place]; }
  int64_t count(int64_t place) const { return ends_[place + 1] - ends_[place]; }

 private:
  template <typename Use>
  static void visit(const Choices& choices, int64_t place, const Use& use) {
    std::for_each(choices.of(place), choices.of(place) + choices.count(place), use);
  }

  HostArray<int64_t> ends_;  // places + 1; of[place] begins at ends_[place]
  HostArray<uint64_t> sources_;
};

}  // namespace

HostArray<uint32_t> link_places(const WalkRows& rows, const PlaceCandidates& candidates, int64_t degree,
                                const Resources& resources) {
  const int64_t places = rows.count();
  HostArray<uint32_t> edges(places * degree, "the graph's edges", resources);
  const Choices choices(places, degree, resources);
  const PruneRooms rooms(rows, degree, std::max(candidates.most, kMostOffers + degree), resources);
  for_places(places, kTaskPlaces, "prune", resources, [&](int64_t place, int slot) {
    PruneRoom& own = rooms.of(slot);
    const int64_t count = candidates.of(place, own.others.data());
    own.pruner.sort_by_key(static_cast<uint32_t>(place), own.others.data(), count, own.sorted.data());
    const int64_t kept = own.pruner.prune(own.sorted.data(), std::min(count, candidates.nearest));
    std::fill(std::copy_n(own.sorted.data(), kept, choices.of(place)), choices.of(place) + degree, kPadding);
  });
  const Offers offers(choices, places, degree, resources);
  for_places(places, kTaskPlaces, "link", resources, [&](int64_t place, int slot) {
    PruneRoom& own = rooms.of(slot);
    uint64_t* const offered = offers.of(place);
    std::sort(offered, offered + offers.count(place));
    const int64_t some = std::min(offers.count(place), kMostOffers);
    uint64_t* const end = std::merge(choices.of(place), choices.of(place) + choices.count(place), offered,
                                     offered + some, own.sorted.data());
    const int64_t count = std::unique(own.sorted.data(), end) - own.sorted.data();
    const int64_t kept = own.pruner.prune(own.sorted.data(), count);
    uint32_t* const list = edges.data() + place * degree;
    for (int64_t i = 0; i < degree; ++i) list[i] = i < kept ? row_of(own.sorted[i]) : kNoEdge;
  });
  return edges;
}

HostArray<uint32_t> link_places(const WalkRows& rows, const NeighborsView& candidates, int64_t degree,
                                const Resources& resources) {
  const auto of = [&](int64_t place, uint32_t* others) {
    int64_t count = 0;
    for (int64_t i = 0; i < candidates.k; ++i) {
      const int64_t other = candidates.ids[place * candidates.k + i];
      if (other >= 0) others[count++] = static_cast<uint32_t>(other);
    }
    return count;
  };
  return link_places(rows, {candidates.k, candidates.k, of}, degree, resources);
}

}  // namespace kith
