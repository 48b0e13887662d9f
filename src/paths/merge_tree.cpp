#include "paths/merge_tree.hpp"

#include <algorithm>

namespace kith {

uint32_t MergeTree::width(uint32_t a, uint32_t b) const {
  uint32_t largest = 0;
  for (const MergeLevel& level : levels_) {
    largest = std::max({largest, level.key[a], level.key[b]});
    if (largest == kNoEdge) break;  // one of them is done
    a = level.parent[a];
    b = level.parent[b];
    if (a == b) return largest;
  }
  return kNoEdge;
}

uint32_t MergeTree::part_of(uint32_t row, size_t level) const {
  for (size_t i = 0; i < level; ++i) row = levels_[i].parent[row];
  return row;
}

}  // namespace kith
