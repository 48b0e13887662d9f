// Where walks begin: the entries of each cell, such that every place can be found.
//
// A cell's entries are, of each connected part of the graph, the place in the cell nearest to its centre. (Joining
// parts by edges makes their places reachable, but a walk of a small beam does not find them: among 2,000 clusters that
// nothing joins a spanning forest gave a recall of 0.06, entries 1.00.) Then every place is searched for with a small
// beam. One that should have been in it and is not is lost, and gets an edge from the nearest places of the beam, which
// were all opened, that have room in their lists; where none has, it becomes an entry of its cell, at most kMostRepairs
// of a cell in each of kRepairRounds rounds. A round looks at what the round before has changed: lost places, those
// that were given an edge to them, and the neighbours of both.
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
  HostArray<uint32_t> places;   // each cell's
  int64_t parts = 0;            // of the graph that are connected, taking edges both ways
  int64_t lost = 0;             // places that no such walk finds, though they are nearer than its last
};

using CellLists = std::vector<std::vector<uint32_t>>;  // the entries of each cell
// Sets offsets and places.
void flatten(const CellLists& lists, WalkEntries& entries, const Resources& resources);

inline constexpr int64_t kNearLost = 12;  // places that are asked for room
// How every place is searched for.
inline constexpr WalkWish kSelfWalk{.beam = 16, .width = 2};

// A place that a walk towards it has not found, and the nearest places that the walk has opened.
struct LostPlace {
  uint32_t place = 0;
  uint32_t near[kNearLost] = {};
  int64_t count = 0;
};

// Who looks at all places of a graph: the threads of a CPU, or a GPU (walk_build_gpu.hpp). Both find the same.
class PlaceSearch {
 public:
  virtual ~PlaceSearch() = default;
  // For each place the smallest one of its connected part.
  virtual HostArray<uint32_t> parts(const WalkView& graph, const Resources& resources) = 0;
  // Those of `sought` that a walk towards them does not find, by place.
  virtual std::vector<LostPlace> lost_of(const WalkView& graph, const std::vector<uint32_t>& sought,
                                         const Resources& resources) = 0;
  // The lists of these places have other edges than before.
  virtual void lists_changed(const WalkView& graph, const std::vector<uint32_t>& places) = 0;
};
std::unique_ptr<PlaceSearch> make_place_search_cpu();

// `graph` has rows, edges and centres; `cells`: of each place, ascending; `edges`: those of the graph, to be added to.
WalkEntries find_entries(const WalkView& graph, const uint32_t* cells, uint32_t* edges, PlaceSearch& search,
                         const Resources& resources);

// The list of a place, to be added to.
using ListToChange = std::function<uint32_t*(uint32_t place)>;

// What becomes of places whose lists are mended: view() is the graph as it is then.
struct PlacesToMend {
  std::function<WalkView()> view;
  ListToChange list_of;
  std::function<void(uint32_t place)> no_room = [](uint32_t) {};  // of a lost one that no list had room for
};

// Searches for these places, and gives those that are lost edges where lists have room; returns how many stay lost.
int64_t mend_places(const PlacesToMend& places, std::vector<uint32_t> sought, PlaceSearch& search,
                    const Resources& resources);

}  // namespace kith
