// Boruvka's algorithm: the minimum spanning forest of a graph, and the tree of the rounds that found it.
//
// Edges are ordered by (key, smaller row, larger row), which no two share, so that the forest is one, whoever computes
// it. The loop of rounds is host code; a backend does the steps of a round. A round halves the parts at least that edges
// leave, and takes time in proportion to the rows with leaving edges, and once, in all rounds, to the edges passed over.
#pragma once

#include "paths/edge_lists.hpp"
#include "paths/merge_tree.hpp"

#include <memory>

namespace kith {

class BoruvkaBackend {
 public:
  virtual ~BoruvkaBackend() = default;

  // Fills key, near and far of a level that has as many parts as there are.
  virtual void find_least_edges(MergeLevel& level) = 0;
  // Joins parts by these edges: fills parent and depth. Parts that nothing leaves are done, and have no parent. Returns
  // how many parts are left.
  virtual int64_t join(MergeLevel& level) = 0;
  // What join() takes for a while, where the work is counted.
  virtual void count_join(const MergeLevel&) {}
};

std::unique_ptr<BoruvkaBackend> make_boruvka_cpu(const EdgeLists& edges, const Resources& resources);

// The rounds. The backend has so many rows.
MergeTree boruvka(BoruvkaBackend& backend, int64_t rows, const Resources& resources);
// On the CPU.
MergeTree boruvka(const EdgeLists& edges, const Resources& resources);

}  // namespace kith
