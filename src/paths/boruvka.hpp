// Boruvka's algorithm: the minimum spanning forest of a graph, and the tree of the rounds that found it.
//
// Edges are ordered by (key, smaller row, larger row), which is unique, so that all backends find the same forest. The
// loop of rounds is host code; a backend does the steps of a round. A round at least halves the number of parts that
// have leaving edges. Its time is proportional to the rows with leaving edges; besides, all rounds together pass over
// each edge once.
#pragma once

#include <kith/knn_graph.hpp>

#include "core/host_array.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace kith {

// A k-NN graph with undirected edges: for every row all edges from it and to it, in ascending order.
//
// An entry is a packed neighbour (core/ordered_key.hpp). Since a row's entries are sorted, the first one that leaves a
// part is the row's least leaving edge by (key, smaller row, larger row), which for a single row is the order of (key,
// other row). The edges up to a width are a prefix.
//
// Cost: two passes over the edges. Edges to a row are first gathered by blocks of rows, so that scattered writes stay
// in the cache. Memory: 16 bytes per neighbour of the graph and 12 per row; during construction 2 more per neighbour
// and, on each thread, 8 per edge to the block with the most edges. Both directions of an edge are stored before
// duplicates are dropped; the gaps of these are not closed.
class EdgeLists {
 public:
  // `core` is empty, or has a distance per row: then an edge weighs at least as much as those of both its rows (mutual
  // reachability). InvalidArgument for an invalid graph. The graph is on the host, and not kept.
  EdgeLists(const KnnGraph& graph, std::span<const float> core, const Resources& resources);

  int64_t rows() const { return lengths_.size(); }
  std::span<const uint64_t> of(int64_t row) const { return {edges_.data() + starts_[row], lengths_[row]}; }

 private:
  HostArray<uint64_t> starts_;  // of each row's edges
  HostArray<uint32_t> lengths_;
  HostArray<uint64_t> edges_;
};

// The tree of Boruvka's rounds: which parts were merged, and by which edges.
//
// On level 0 every row is a part. In a round every part takes its least leaving edge, and parts connected by these
// edges become one part of the next level; a part without leaving edges is finished. So a part has a parent and an
// edge, and the edges of all parts are the minimum spanning forest (an edge that two parts took occurs twice). The
// largest edge on the ways of two rows up to their common ancestor is the largest edge between them in the forest, and
// hence the least possible (King 1997): at most log2(rows) levels on each side.
//
// Memory: 20 bytes per part of each level: less than 40 per row, about 27 for k-NN graphs.
inline constexpr uint32_t kNoEdge = ~uint32_t{0};  // the key of a part without leaving edges
inline constexpr uint32_t kNoPart = ~uint32_t{0};  // the parent of such a part

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
  HostArray<uint32_t> depth;   // edges to follow to a part that shares its edge with another, or has none: 0 there
};

struct ForestEdge {
  uint32_t key;
  uint32_t smaller;  // of its two rows
  uint32_t larger;

  // The order of edges in this file.
  bool operator<(const ForestEdge& other) const {
    return key != other.key           ? key < other.key
           : smaller != other.smaller ? smaller < other.smaller
                                      : larger < other.larger;
  }
};

class MergeTree {
 public:
  // `parts`: the graph's connected components.
  MergeTree(int64_t rows, std::vector<MergeLevel> levels, int64_t parts)
      : rows_(rows), parts_(parts), levels_(std::move(levels)) {}

  int64_t rows() const { return rows_; }
  int64_t parts() const { return parts_; }

  // The key of the largest edge between two different rows in the forest; kNoEdge if they are not connected.
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

  // Calls take(row) for the rows of the forest's path between connected rows, inclusive.
  template <typename Take>
  void walk(uint32_t a, uint32_t b, const Take& take) const {
    take(a);
    walk_on(a, b, take);
  }

  // Every edge of the forest once, in an arbitrary but fixed order. Their number is rows() - parts().
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

  // The rows after a up to b, which are connected.
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

class BoruvkaBackend {
 public:
  virtual ~BoruvkaBackend() = default;

  // Fills `key`, `near` and `far` for every current part.
  virtual void find_least_edges(MergeLevel& level) = 0;
  // Merges parts by these edges: fills parent and depth. Parts without leaving edges are finished, without a parent.
  // Returns the number of remaining parts.
  virtual int64_t join(MergeLevel& level) = 0;
  // Allocates the memory of a round beside the level, with counting resources.
  virtual void count_round(const MergeLevel&) {}
};

std::unique_ptr<BoruvkaBackend> make_boruvka_cpu(const EdgeLists& edges, const Resources& resources);

// Runs the rounds on a backend of `rows` rows.
MergeTree boruvka(BoruvkaBackend& backend, int64_t rows, const Resources& resources);
// The same on the CPU.
MergeTree boruvka(const EdgeLists& edges, const Resources& resources);

// On a GPU, which keeps the tree, for many widths at once.
//
// The levels equal the CPU's byte for byte: both take the same edges and number parts in the same order.
// Memory on the device during the rounds: 12 bytes per neighbour and 52 per row, and for a graph on the host its own 12
// per neighbour; the tree keeps 8 per part of each level, about 14 per row.
// Parents and keys of a level, on a device.
struct DeviceLevel {
  std::shared_ptr<uint32_t> parents;  // of all parts, then their keys
  int64_t parts = 0;

  uint32_t* keys() const { return parents.get() + parts; }
};

struct DeviceMergeTree {
  int device = 0;
  std::vector<DeviceLevel> levels;
};

// Puts the levels into `tree`. InvalidArgument for an invalid graph.
std::unique_ptr<BoruvkaBackend> make_boruvka_cuda(const KnnGraph& graph, DeviceMergeTree& tree,
                                                  const Resources& resources);

// For pairs of rows that are in the tree, on the host.
void widths_cuda(const DeviceMergeTree& tree, const int64_t* pairs, int64_t count, float* out,
                 const Resources& resources);

}  // namespace kith
