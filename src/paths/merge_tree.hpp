// The tree of Boruvka's rounds: what joined what, and over which edge.
//
// Level 0 has a part for each row. In a round every part takes its least leaving edge, and parts that these edges join
// are one part of the next level; a part that nothing leaves is done. So a part has a parent above it and an edge
// beside it, and the edges of all parts are the minimum spanning forest (two parts that took the same edge have it
// twice). The largest edge beside the ways of two rows up to where they meet is the largest edge between them in the
// forest, hence the least possible (King 1997): at most log2(rows) levels up on each side.
//
// Memory: 20 bytes for each part of each level, less than 40 for each row, 27 or so for k-NN graphs.
#pragma once

#include "core/host_array.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace kith {

inline constexpr uint32_t kNoEdge = ~uint32_t{0};  // the key of a part that nothing leaves
inline constexpr uint32_t kNoPart = ~uint32_t{0};  // its parent

// The parts of one round.
struct MergeLevel {
  MergeLevel(int64_t parts, const Resources& resources)
      : parent(parts, "joined parts", resources),
        key(parts, "the parts' edges", resources),
        near(parts, "the parts' edges", resources),
        far(parts, "the parts' edges", resources),
        depth(parts, "how deep parts hang", resources) {}

  int64_t parts() const { return parent.size(); }

  HostArray<uint32_t> parent;  // a part of the next level, or kNoPart
  HostArray<uint32_t> key;     // of its least leaving edge (core/ordered_key.hpp), or kNoEdge
  HostArray<uint32_t> near;    // the row of that edge in this part
  HostArray<uint32_t> far;     // and the one in the part that it leads to
  HostArray<uint32_t> depth;   // edges to go, part by part, to one that holds its edge twice, or has none; that has 0
};

struct ForestEdge {
  uint32_t key;
  uint32_t smaller;  // of its two rows
  uint32_t larger;

  // The order of edges everywhere here.
  bool operator<(const ForestEdge& other) const {
    return key != other.key             ? key < other.key
           : smaller != other.smaller ? smaller < other.smaller
                                        : larger < other.larger;
  }
};

class MergeTree {
 public:
  // `parts`: as many as the graph has.
  MergeTree(int64_t rows, std::vector<MergeLevel> levels, int64_t parts)
      : rows_(rows), parts_(parts), levels_(std::move(levels)) {}

  int64_t rows() const { return rows_; }
  int64_t parts() const { return parts_; }

  // The key of the largest edge between two different rows in the forest; kNoEdge where nothing joins them.
  uint32_t width(uint32_t a, uint32_t b) const {
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

  // The forest's path between joined rows, with both. Calls take(row) for each.
  template <typename Take>
  void walk(uint32_t a, uint32_t b, const Take& take) const {
    take(a);
    walk_on(a, b, take);
  }

  // Every edge of the forest once, in no order that matters but always the same. Their number is rows() - parts().
  template <typename Take>
  void each_edge(const Take& take) const {
    for (const MergeLevel& level : levels_) {
      for (int64_t part = 0; part < level.parts(); ++part) {
        if (level.depth[part] == 0) continue;
        const uint32_t near = level.near[part];
        const uint32_t far = level.far[part];
        take(ForestEdge{level.key[part], near < far ? near : far, near < far ? far : near});
      }
    }
  }

 private:
  uint32_t part_of(uint32_t row, size_t level) const {
    for (size_t i = 0; i < level; ++i) row = levels_[i].parent[row];
    return row;
  }
  // The part of that level to which a part's edge leads.
  uint32_t next(uint32_t part, size_t level) const { return part_of(levels_[level].far[part], level); }

  // The rows behind a up to b, which are joined.
  template <typename Take>
  void walk_on(uint32_t a, uint32_t b, const Take& take) const {
    if (a == b) return;
    size_t level = 0;
    uint32_t from = a;
    uint32_t to = b;
    while (levels_[level].parent[from] != levels_[level].parent[to]) {
      from = levels_[level].parent[from];
      to = levels_[level].parent[to];
      ++level;
    }
    // Within each part the rows are joined by lower levels: the recursion is no deeper than the tree.
    const MergeLevel& here = levels_[level];
    std::vector<uint32_t> back;  // parts whose edges are taken against their direction, b's first
    uint32_t at = a;
    while (from != to) {
      if (here.depth[from] >= here.depth[to]) {
        walk_on(at, here.near[from], take);
        at = here.far[from];
        take(at);
        from = next(from, level);
      } else {
        back.push_back(to);
        to = next(to, level);
      }
    }
    for (; !back.empty(); back.pop_back()) {
      walk_on(at, here.far[back.back()], take);
      at = here.near[back.back()];
      take(at);
    }
    walk_on(at, b, take);
  }

  int64_t rows_;
  int64_t parts_;
  std::vector<MergeLevel> levels_;
};

}  // namespace kith
