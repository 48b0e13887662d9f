// Boruvka's algorithm: the minimum spanning forest of a graph, and the tree of the rounds that found it.
//
// Edges are ordered by (key, smaller row, larger row), which no two share, so that the forest is one, whoever computes
// it. The loop of rounds is host code; a backend does the steps of a round. A round halves the parts at least that
// edges leave, and takes time in proportion to the rows with leaving edges, and once, in all rounds, to the edges
// passed over.
#pragma once

#include <kith/knn_graph.hpp>

#include "paths/edge_lists.hpp"
#include "paths/merge_tree.hpp"

#include <cstdint>
#include <memory>
#include <vector>

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

// On a GPU, with the tree of the rounds there, for many widths at once.
//
// The levels are the CPU's, byte for byte: both take the same edges and number parts in the same order.
// Memory on the device while it works: 12 bytes for each neighbour and 52 for each row, and where the graph lies on the
// host its 12 bytes for each neighbour; the tree keeps 8 for each part of each level, 14 or so for each row.
// On a device: parents and keys of a level.
struct DeviceLevel {
  std::shared_ptr<uint32_t> parents;  // of all parts, then their keys
  int64_t parts = 0;

  uint32_t* keys() const { return parents.get() + parts; }
};

struct DeviceMergeTree {
  int device = 0;
  std::vector<DeviceLevel> levels;
};

// Leaves its levels in `tree`. Throws InvalidArgument for a graph that is none.
std::unique_ptr<BoruvkaBackend> make_boruvka_cuda(const KnnGraph& graph, DeviceMergeTree& tree,
                                                  const Resources& resources);

// Of pairs of rows that are there, on the host.
void widths_cuda(const DeviceMergeTree& tree, const int64_t* pairs, int64_t count, float* out,
                 const Resources& resources);

}  // namespace kith
