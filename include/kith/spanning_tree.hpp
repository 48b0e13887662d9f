// The minimum spanning tree of a k-NN graph, taken both ways, and the single linkage that follows from it.
//
// Edges are ordered by (weight, smaller row, larger row), so that the tree is one for a graph, whatever the threads.
// A graph may fall into parts that no edge joins; what then happens is asked for.
//
// Memory: as SmoothPaths while it is built; then 20 bytes for each edge. single_linkage() takes 32 more.
#pragma once

#include <kith/export.hpp>
#include <kith/host_buffer.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>
#include <kith/row_labels.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

enum class EdgeWeights : uint8_t {
  distance,             // as the graph tells it
  mutual_reachability,  // the largest of the distance and both rows' core distances, as HDBSCAN weighs
};

enum class Unconnected : uint8_t {
  refuse,   // InvalidArgument that counts the parts
  at_inf,   // the first row of all is joined to the first row of each other part at +inf
  nearest,  // by the shortest edges between parts, found by exact search: wants the vectors
};

KITH_EXPORT std::string_view name_of(EdgeWeights weights);
KITH_EXPORT std::string_view name_of(Unconnected unconnected);
// "distance", "mutual_reachability"; "refuse", "at_inf", "nearest". InvalidArgument listing the names.
KITH_EXPORT EdgeWeights parse_edge_weights(std::string_view name);
KITH_EXPORT Unconnected parse_unconnected(std::string_view name);

struct SpanningTreeParams {
  EdgeWeights weights = EdgeWeights::distance;
  // A row's core distance is that of its min_samples-th neighbour, not counting itself, 1 to k; 0: 5, or k where that is
  // smaller. For mutual_reachability alone.
  int64_t min_samples = 0;
  Unconnected unconnected = Unconnected::refuse;

  KITH_EXPORT void validate() const;
};

class SpanningTree {
 public:
  SpanningTree() = default;
  SpanningTree(int64_t rows, const Resources& resources)
      : ends_((rows > 0 ? rows - 1 : 0) * 16, "the tree's edges", resources),
        weights_((rows > 0 ? rows - 1 : 0) * 4, "the tree's weights", resources),
        rows_(rows) {}

  int64_t rows() const { return rows_; }
  int64_t size() const { return rows_ > 0 ? rows_ - 1 : 0; }
  // Least first: the smaller and the larger row of each edge, and how long it is, in the metric's unit.
  int64_t* ends(int64_t edge = 0) const { return ends_.as<int64_t>() + 2 * edge; }
  float* weights() const { return weights_.as<float>(); }

  // SciPy's layout, size() x 4 doubles: the two clusters that are joined, the smaller number first, their distance, and
  // the rows of the new cluster, whose number is rows() and the edge's.
  KITH_EXPORT HostBuffer single_linkage(const Resources& resources = Resources()) const;
  // The sets of rows that edges up to that weight join. InvalidArgument for NaN.
  KITH_EXPORT RowLabels labels(double height, const Resources& resources = Resources()) const;

 private:
  HostBuffer ends_;
  HostBuffer weights_;
  int64_t rows_ = 0;
};

// Throws InvalidArgument for inner_product, which is no distance, and for `nearest`, which wants the vectors.
KITH_EXPORT SpanningTree spanning_tree(const KnnGraph& graph, const SpanningTreeParams& params = {},
                                       const Resources& resources = Resources());
// `x` are the graph's vectors, on the host, of which a search is made where parts are joined by `nearest`.
KITH_EXPORT SpanningTree spanning_tree(const KnnGraph& graph, const MatrixView& x, const SpanningTreeParams& params,
                                       const Resources& resources = Resources());

}  // namespace kith
