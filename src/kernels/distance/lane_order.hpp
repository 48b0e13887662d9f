// The order in which columns of a canonical sum (canonical.hpp) are packed, and its lanes joined, when many pairs are
// summed lane by lane.
#pragma once

#include "kernels/distance/canonical.hpp"

#include <cstdint>

namespace kith {

// The order of a slab's packed columns: lane by lane.
struct LaneOrder {
  int64_t first[kCanonicalLanes + 1];

  explicit LaneOrder(int64_t cols) {
    first[0] = 0;
    for (int64_t lane = 0; lane < kCanonicalLanes; ++lane) {
      first[lane + 1] = first[lane] + (cols - lane + kCanonicalLanes - 1) / kCanonicalLanes;
    }
  }
  int64_t place(int64_t col) const { return first[col % kCanonicalLanes] + col / kCanonicalLanes; }
};

// The lanes that have columns, in the order of a walk over the tree that keeps no more than its depth of unfinished
// sums, and how many of those each lane completes.
struct LaneWalk {
  struct Step {
    int lane;
    int joins;
  };
  Step steps[kCanonicalLanes];
  int count = 0;

  explicit LaneWalk(int64_t cols) {
    bool waiting[8];
    int depth = 0;
    for (int i = 0; i < kCanonicalLanes; ++i) {
      const int lane = (i & 1) << 3 | (i & 2) << 1 | (i & 4) >> 1 | (i & 8) >> 3;
      bool some = lane < cols;
      if (some) steps[count++] = {lane, 0};
      for (int t = i; (t & 1) != 0; t >>= 1) {
        const bool before = waiting[--depth];
        if (before && some) ++steps[count - 1].joins;
        some = some || before;
      }
      waiting[depth++] = some;
    }
  }
};

}  // namespace kith
