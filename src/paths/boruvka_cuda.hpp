// Boruvka's rounds on a GPU, and the tree of them there, for many widths at once.
//
// The levels are the CPU's, byte for byte: both take the same edges and number parts in the same order.
// Memory on the device while it works: 12 bytes for each neighbour and 52 for each row, and where the graph lies on the
// host its 12 bytes for each neighbour; the tree keeps 8 for each part of each level, 14 or so for each row.
#pragma once

#include <kith/knn_graph.hpp>

#include "paths/boruvka.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

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
