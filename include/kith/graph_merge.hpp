// Graphs made of graphs: of two sets or of many, with new rows, or better than before.
//
// Merging (GGM, Algorithm 3 of "Large-scale approximate k-NN graph construction on GPU"): rows of both sets get random
// neighbours of the other set in place of the far half of their lists, rounds of NN-Descent compare pairs across the sets
// alone, and what was set aside is merged in last. The parts' graphs hold neighbours of their own part alone; the result
// counts rows through: those of the first part, then those of the next.
//
// Rows may lie in host memory or in that of a CUDA device, which then works, and so may graphs, each for itself. What comes of
// it lies on the device where all rows do, else on the host; or in the caller's arrays, rows x k, on the host or the device
// that works. The same input, parameters and seed give the same bytes on every device, for any number of threads and memory
// limit. OutOfMemory names a memory limit with which the whole call would do.
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
  double recall = 0.99;  // below 1, but for extend_graph; as in KnnGraphParams
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

// InvalidArgument for graphs of different k or metric, rows of different type or dimension, and a graph that is not of
// its rows.
KITH_EXPORT KnnGraph merge_graphs(const KnnGraph& graph1, const MatrixView& x1, const KnnGraph& graph2,
                                  const MatrixView& x2, const GraphMergeParams& params = {},
                                  const Resources& resources = Resources());
// Many, pair by pair, each pair once and from the parts' own graphs.
KITH_EXPORT KnnGraph merge_graphs(const std::vector<GraphPart>& parts, const GraphMergeParams& params = {},
                                  const Resources& resources = Resources());

KITH_EXPORT GraphReport merge_graphs(const std::vector<GraphPart>& parts, const NeighborsView& out,
                                     const GraphMergeParams& params, const Resources& resources = Resources());

// The graph of x and, after its rows, of `fresh`. Up to 4,096 new rows are compared with all, more are merged; with a recall
// of 1 any number is compared with all.
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
