// A k-NN graph taken both ways: for every row all edges from it and to it, least first.
//
// An entry is a packed neighbour (core/ordered_key.hpp), and a row's entries are sorted, so that the first one that
// leaves a part is that row's least leaving edge in the order (key, smaller row, larger row): for one row that is the
// order of (key, other row). Who wants edges up to a width reads a prefix.
//
// Cost: two passes over the edges. Edges to a row are first gathered by blocks of rows, so that nothing is scattered
// wider than a cache. Memory: 16 bytes for each neighbour of the graph and 12 for each row, and while it is made 2 more for
// each neighbour and, on each thread, 8 for each edge to the block that has the most. Both directions of an edge are
// there before one is dropped; the gaps that this leaves are not closed.
#pragma once

#include <kith/knn_graph.hpp>

#include "core/host_array.hpp"
#include "core/ordered_key.hpp"

#include <cstdint>
#include <span>

namespace kith {

class EdgeLists {
 public:
  // `core` is empty, or has a distance for each row: an edge then weighs at least as much as both its ends' (mutual
  // reachability). Throws InvalidArgument for a graph that is none. The graph is on the host, and not kept.
  EdgeLists(const KnnGraph& graph, std::span<const float> core, const Resources& resources);

  // What that takes, by a pass over the graph: bytes that are kept, and more while it is made.
  struct Bytes {
    int64_t kept = 0;
    int64_t making = 0;
  };
  static Bytes bytes(const KnnGraph& graph, int threads);

  int64_t rows() const { return lengths_.size(); }
  std::span<const uint64_t> of(int64_t row) const { return {edges_.data() + starts_[row], lengths_[row]}; }

 private:
  HostArray<uint64_t> starts_;  // of each row's edges
  HostArray<uint32_t> lengths_;
  HostArray<uint64_t> edges_;
};

}  // namespace kith
