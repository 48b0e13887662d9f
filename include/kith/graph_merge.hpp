// Merging graphs of several sets of rows, adding rows to a graph, and improving a graph.
//
// Merging (GGM, Algorithm 3 of "Large-scale approximate k-NN graph construction on GPU"): in the lists of both sets,
// random rows of the other set replace the far half; rounds of NN-Descent compare only pairs across the sets; the
// replaced neighbours are merged in at the end. The parts' graphs contain neighbours of their own part only. Rows of
// the result are numbered consecutively: those of the first part, then those of the next.
//
// Rows and graphs may each be in host memory or in that of a CUDA device, which then does the work. The result is on
// the device if all rows are, otherwise on the host, or in the caller's rows x k arrays on the host or the device that
// works. The same input, parameters and seed give the same bytes on every device, for any number of threads and any
// memory limit. OutOfMemory names a memory limit with which the whole call works.
#pragma once

#include <kith/export.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace kith {

struct GraphMergeParams {
  double recall = 0.99;  // as in KnnGraphParams; 1 only in extend_graph()
  uint64_t seed = 0;
  std::optional<int64_t> samples = {};      // as for nn_descent
  std::optional<int64_t> list_length = {};  // the same
  std::optional<int64_t> iterations = {};   // the same
  std::optional<double> delta = {};         // the same
  bool check_finite = true;            // refuse NaN and infinities, naming the row

  KITH_EXPORT void validate() const;
};

// A part: its rows and their graph.
struct GraphPart {
  KnnGraph graph;
  MatrixView x;
};

// InvalidArgument for graphs of different k or metric, rows of different dtype or dimension, and a graph that does not
// belong to its rows.
KITH_EXPORT KnnGraph merge_graphs(const KnnGraph& graph1, const MatrixView& x1, const KnnGraph& graph2,
                                  const MatrixView& x2, const GraphMergeParams& params = {},
                                  const Resources& resources = Resources());
// Merges all pairs of parts, each pair once and from the parts' own graphs.
KITH_EXPORT KnnGraph merge_graphs(const std::vector<GraphPart>& parts, const GraphMergeParams& params = {},
                                  const Resources& resources = Resources());

KITH_EXPORT GraphReport merge_graphs(const std::vector<GraphPart>& parts, const NeighborsView& out,
                                     const GraphMergeParams& params, const Resources& resources = Resources());

// The graph of x followed by the rows of `fresh`. Up to 4,096 new rows are compared with all rows; more are merged,
// unless the recall is 1.
KITH_EXPORT KnnGraph extend_graph(const KnnGraph& graph, const MatrixView& x, const MatrixView& fresh,
                                  const GraphMergeParams& params = {}, const Resources& resources = Resources());
KITH_EXPORT GraphReport extend_graph(const KnnGraph& graph, const MatrixView& x, const MatrixView& fresh,
                                     const NeighborsView& out, const GraphMergeParams& params,
                                     const Resources& resources = Resources());

// The graph of the same rows, improved by rounds of NN-Descent until the recall is reached.
KITH_EXPORT KnnGraph refine_graph(const KnnGraph& graph, const MatrixView& x, const GraphMergeParams& params = {},
                                  const Resources& resources = Resources());
KITH_EXPORT GraphReport refine_graph(const KnnGraph& graph, const MatrixView& x, const NeighborsView& out,
                                     const GraphMergeParams& params, const Resources& resources = Resources());

}  // namespace kith
