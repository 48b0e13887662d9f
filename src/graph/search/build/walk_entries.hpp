// Entries of walks for each cell, chosen so that every place can be found.
//
// A cell's entries are, for each connected component of the graph, the place in the cell nearest to its centre.
// (Joining components by edges makes their places reachable, but a walk with a small beam does not find them: for 2,000
// unconnected clusters, a spanning forest gave a recall of 0.06, entries 1.00.) Then every place is searched for with a
// small beam. A place that should be in the beam but is not is lost: it gets an edge from the nearest places of the
// beam, all of them visited, whose lists have room; if there are none, it becomes an entry of its cell, at most
// kMostRepairs per cell in each of kRepairRounds rounds. A round only visits what the previous one changed: lost
// places, those that got an edge to them, and the neighbours of both.
//
// Time: a small walk for each place. Memory: 64 bytes for each lost place.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "graph/search/graph/walk_view.hpp"
#include "graph/search/walk/walk.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace kith {

struct WalkEntries {
  HostArray<uint32_t> offsets;  // cells + 1
  HostArray<uint32_t> places;   // the entries, cell by cell
  int64_t parts = 0;            // connected components of the graph, with edges in both directions
  int64_t lost = 0;             // places not found by a walk to them, though nearer than its last result
};

using CellLists = std::vector<std::vector<uint32_t>>;  // the entries of each cell
// Sets entries.offsets and entries.places.
void flatten(const CellLists& lists, WalkEntries& entries, const Resources& resources);

inline constexpr int64_t kNearLost = 12;  // number of places checked for room in their lists
// The parameters of the walk to every place.
inline constexpr WalkParams kSelfWalk{.beam = 16, .width = 2};

// A place not found by a walk to it, and the nearest places that the walk visited.
struct LostPlace {
  uint32_t place = 0;
  uint32_t near[kNearLost] = {};
  int64_t count = 0;
};

// Searches for all places of a graph: on all threads, or on a GPU (walk_build_gpu.hpp), with the same result.
class PlaceSearch {
 public:
  virtual ~PlaceSearch() = default;
  // For each place, the smallest place of its connected component.
  virtual HostArray<uint32_t> parts(const WalkView& graph, const Resources& resources) = 0;
  // The places of `sought` not found by a walk to them, in ascending order.
  virtual std::vector<LostPlace> lost_of(const WalkView& graph, const std::vector<uint32_t>& sought,
                                         const Resources& resources) = 0;
  // Must be called when the lists of these places have changed.
  virtual void lists_changed(const WalkView& graph, const std::vector<uint32_t>& places) = 0;
};
std::unique_ptr<PlaceSearch> make_place_search_cpu();

// `graph` has rows, edges and centres; `cells`: of each place, ascending; `edges`: the graph's, added to.
WalkEntries find_entries(const WalkView& graph, const uint32_t* cells, uint32_t* edges, PlaceSearch& search,
                         const Resources& resources);

// Returns the list of a place, for adding edges.
using ListToChange = std::function<uint32_t*(uint32_t place)>;

// The places to mend and callbacks for changing their lists; view() is the current graph.
struct PlacesToMend {
  std::function<WalkView()> view;
  ListToChange list_of;
  std::function<void(uint32_t place)> no_room = [](uint32_t) {};  // called for a lost place for which no list had room
};

// Searches for these places and adds edges to lost ones where lists have room; returns how many remain lost.
int64_t mend_places(const PlacesToMend& places, std::vector<uint32_t> sought, PlaceSearch& search,
                    const Resources& resources);

}  // namespace kith
