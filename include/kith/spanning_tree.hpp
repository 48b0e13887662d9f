// The minimum spanning tree of a k-NN graph with undirected edges, and the single linkage that follows from it.
//
// Edges are ordered by (weight, smaller row, larger row), so that a graph has exactly one tree, for any number of
// threads. A graph may have several connected components; `Unconnected` says what to do about them.
//
// Memory: as SmoothPaths during construction, then 20 bytes per edge. single_linkage() takes 32 more.
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
  distance,             // as in the graph
  mutual_reachability,  // the maximum of the distance and both rows' core distances, as in HDBSCAN
};

enum class Unconnected : uint8_t {
  refuse,   // InvalidArgument with the number of components
  at_inf,   // connect the first row of each component to row 0, at +inf
  nearest,  // connect them by the shortest edges between components, found by exact search in the vectors
};

KITH_EXPORT std::string_view name_of(EdgeWeights weights);
KITH_EXPORT std::string_view name_of(Unconnected unconnected);
// "distance", "mutual_reachability"; "refuse", "at_inf", "nearest". InvalidArgument listing the names.
KITH_EXPORT EdgeWeights parse_edge_weights(std::string_view name);
KITH_EXPORT Unconnected parse_unconnected(std::string_view name);

struct SpanningTreeParams {
  EdgeWeights weights = EdgeWeights::distance;
  // A row's core distance is that of its min_samples-th neighbour, not counting itself: 1 to k; 0: 5, or k if that is
  // smaller. Only for mutual_reachability.
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
  // Edges by ascending weight: the smaller and the larger row of each, and its weight in the metric's unit.
  int64_t* ends(int64_t edge = 0) const { return ends_.as<int64_t>() + 2 * edge; }
  float* weights() const { return weights_.as<float>(); }

  // In SciPy's layout, size() x 4 doubles: the two clusters that edge i merges, the smaller number first, their
  // distance, and the number of rows of the new cluster, which is cluster rows() + i.
  KITH_EXPORT HostBuffer single_linkage(const Resources& resources = Resources()) const;
  // The sets of rows that are connected by edges of up to this weight. InvalidArgument for NaN.
  KITH_EXPORT RowLabels labels(double height, const Resources& resources = Resources()) const;

 private:
  HostBuffer ends_;
  HostBuffer weights_;
  int64_t rows_ = 0;
};

// InvalidArgument for inner_product, which is not a distance, and for Unconnected::nearest, which needs the vectors.
KITH_EXPORT SpanningTree spanning_tree(const KnnGraph& graph, const SpanningTreeParams& params = {},
                                       const Resources& resources = Resources());
// `x`: the graph's vectors, on the host, for Unconnected::nearest.
KITH_EXPORT SpanningTree spanning_tree(const KnnGraph& graph, const MatrixView& x, const SpanningTreeParams& params,
                                       const Resources& resources = Resources());

}  // namespace kith
