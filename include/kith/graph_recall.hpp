// The recall of a graph, measured by exact searches for `rows` of its rows, which is the cost.
//
// A neighbour counts as found if it is no farther than the true k-th, by the distance of the vectors rather than the
// one in the graph: ties count, and graphs built from codes are measured like others.
#pragma once

#include <kith/export.hpp>
#include <kith/graph_report.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith {

struct GraphRecallParams {
  int64_t rows = 1000;  // sample size; all rows if there are fewer
  uint64_t seed = 0;

  KITH_EXPORT void validate() const;
};

// InvalidArgument for a graph without rows and if x has another number of them. Both may be in any memory.
KITH_EXPORT GraphRecall measure_recall(const KnnGraph& graph, const MatrixView& x, const GraphRecallParams& params = {},
                                       const Resources& resources = Resources());

}  // namespace kith
