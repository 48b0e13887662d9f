// A walk over a graph as graph/search/walk/walk.hpp defines it, slowly: everything that was seen is kept in order.
#pragma once

#include "graph/search/walk/walk.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

namespace kith::reference {

using Seen = std::set<std::pair<uint32_t, uint32_t>>;  // (key, place)

// The beam at the end. `key`: of a place; `centre_key`: of a cell.
inline std::vector<std::pair<uint32_t, uint32_t>> walk(const WalkView& graph, const WalkParams& params,
                                                       const std::function<uint32_t(uint32_t)>& key,
                                                       const std::function<uint32_t(uint32_t)>& centre_key) {
  Seen cells;
  for (uint32_t cell = 0; cell < graph.centres.count(); ++cell) cells.insert({centre_key(cell), cell});
  Seen seen;
  const auto see = [&](uint32_t place) { seen.insert({key(place), place}); };
  int64_t near = 0;
  for (const auto& [unused, cell] : cells) {
    if (near++ == kNearCells) break;
    for (uint32_t e = graph.entry_offsets[cell]; e < graph.entry_offsets[cell + 1]; ++e) see(graph.entries[e]);
  }
  for (int64_t place = graph.rows.count(); place < graph.places(); ++place) see(static_cast<uint32_t>(place));
  std::set<uint32_t> opened;
  for (;;) {
    std::vector<uint32_t> next;
    int64_t number = 0;
    for (auto at = seen.begin(); at != seen.end() && number < params.beam; ++at, ++number) {
      if (opened.contains(at->second)) continue;
      next.push_back(at->second);
      if (std::ssize(next) == params.width) break;
    }
    if (next.empty()) break;
    for (const uint32_t place : next) {
      opened.insert(place);
      if (place >= graph.rows.count()) continue;
      for (int64_t i = 0; i < graph.degree; ++i) {
        const uint32_t other = graph.edges[place * graph.degree + i];
        if (other != kNoEdge) see(other);
      }
    }
  }
  std::vector<std::pair<uint32_t, uint32_t>> beam;
  for (const auto& one : seen) {
    if (std::ssize(beam) < params.beam) beam.push_back(one);
  }
  return beam;
}

}  // namespace kith::reference
