// Where walks begin: the entries of each cell, such that every place can be found.
//
// A cell's entries are, of each connected part of the graph, the place in the cell nearest to its centre. (Joining
// parts by edges makes their places reachable, but a walk of a small beam does not find them: among 2,000 clusters that
// nothing joins a spanning forest gave a recall of 0.06, entries 1.00.) Then every place is searched for with a small
// beam; places that are not found become entries of their cell, at most kMostRepairs of a cell in each of kRepairRounds
// rounds.
//
// Time: a small walk for each place.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "graph/search/walk_view.hpp"

#include <cstdint>

namespace kith {

struct WalkEntries {
  HostArray<uint32_t> offsets;  // cells + 1
  HostArray<uint32_t> places;   // each cell's
  int64_t parts = 0;            // of the graph that are connected, taking edges both ways
  int64_t lost = 0;             // places that no walk of that beam finds
};

// `graph` has rows, edges and centres; `cells`: of each place, ascending.
WalkEntries find_entries(const WalkView& graph, const uint32_t* cells, const Resources& resources);

}  // namespace kith
