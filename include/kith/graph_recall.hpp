// How many of the true neighbours a graph has: some rows are searched exactly in the vectors that it was built of.
//
// A neighbour counts as found where it is no farther than the true k-th, by the vectors and not by what distances the graph
// tells: so ties count, and graphs of codes are measured like others. Cost: an exact search of `rows` queries.
#pragma once

#include <kith/export.hpp>
#include <kith/graph_report.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith {

struct GraphRecallParams {
  int64_t rows = 1000;  // to look at, drawn by the seed; all where there are fewer
  uint64_t seed = 0;

  KITH_EXPORT void validate() const;
};

// InvalidArgument for a graph without rows, and where x has another number of them. Both lie anywhere.
KITH_EXPORT GraphRecall measure_recall(const KnnGraph& graph, const MatrixView& x, const GraphRecallParams& params = {},
                                       const Resources& resources = Resources());

}  // namespace kith
