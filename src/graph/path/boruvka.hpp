// Boruvka's algorithm: the minimum spanning forest of a graph, and the tree of the rounds that found it.
//
// Edges are ordered by (key, smaller row, larger row), which no two share, so that the forest is one, whoever computes
// it. The loop of rounds is host code; a backend does the steps of a round. A round halves the parts at least, and takes
// time in proportion to the rows that still have leaving edges, and once, in all rounds, to the edges passed over.
#pragma once

#include "graph/path/edge_lists.hpp"
#include "graph/path/merge_tree.hpp"

#include <memory>

namespace kith {

class BoruvkaBackend {
 public:
  virtual ~BoruvkaBackend() = default;

  // Fills key, near and far of a level that has as many parts as there are.
  virtual void find_least_edges(MergeLevel& level) = 0;
  // Joins parts by these edges: fills parent and depth. Returns how many parts there are then.
  virtual int64_t join(MergeLevel& level) = 0;
};

std::unique_ptr<BoruvkaBackend> make_boruvka_cpu(const EdgeLists& edges, const Resources& resources);

MergeTree boruvka(const EdgeLists& edges, const Resources& resources);

}  // namespace kith
