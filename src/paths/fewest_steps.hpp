// The path with the fewest steps over edges no longer than a width; of several the first in the order of their rows.
//
// Breadth-first from both ends, level by level, the smaller level first, until an edge joins a level of each: then the
// number of steps is known. Rows that lie on some shortest path are marked backwards on a's side, and the path goes from
// a, always to the smallest row that does.
//
// Time is that of the edges of the rows seen. Memory: 8 bytes for each row of the graph, taken once and kept for the next
// path; what is not touched takes no room.
#pragma once

#include "core/host_array.hpp"
#include "paths/edge_lists.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class FewestSteps {
 public:
  FewestSteps(int64_t rows, const Resources& resources);

  // From a to another row b, with both; they are joined by edges with keys up to `width`. Throws Cancelled.
  std::vector<uint32_t> path(const EdgeLists& edges, uint32_t a, uint32_t b, uint32_t width,
                             const Resources& resources);

 private:
  // The rows seen from one end, in the order of their levels.
  struct Side {
    uint32_t mark;                 // in front of a row's place
    std::vector<uint32_t> levels;  // where each level begins; its end is the next one's, or `seen`
    uint32_t seen = 0;

    uint32_t begin(size_t level) const { return levels[level]; }
    uint32_t end(size_t level) const { return level + 1 < levels.size() ? levels[level + 1] : seen; }
    uint32_t newest() const { return seen - levels.back(); }
  };

  uint32_t& row_at(const Side& side, uint32_t place) const {
    return queue_[side.mark == 0 ? place : queue_.size() - 1 - place];
  }
  void see(Side& side, uint32_t row);
  // Whether the row is of that side, at places from begin to end - 1.
  bool lies(uint32_t row, const Side& side, uint32_t begin, uint32_t end) const;
  // Adds a level to `side`, unless an edge leads to the newest level of `other`. Then the rows of a's newest level that
  // have such an edge are put in front of it, and the number of them is returned.
  uint32_t grow(Side& side, Side& other, const EdgeLists& edges, uint32_t width);
  // Puts a row of a's level in front of it, behind `count` that are there, unless it is one of them.
  void bring_forward(const Side& side, size_t level, uint32_t row, uint32_t& count);
  uint32_t smallest(uint32_t from, const EdgeLists& edges, uint32_t width, const Side& side, uint32_t begin,
                    uint32_t end) const;
  void forget(const Side& side);

  HostArray<uint32_t> place_;  // of each row: 0 where it was not seen, else its side's mark and its place + 1
  HostArray<uint32_t> queue_;  // a's side from the front, b's from the back
};

}  // namespace kith
