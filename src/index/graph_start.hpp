// Checks of a k-NN graph of an index's first vectors from which the index's own graph is to be built.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

namespace kith {

// Checks that a graph belongs to rows, both in host memory. InvalidArgument if their number or the metric differs, if
// neighbours are not rows, or if the distances of a sample are not those of the rows. Cost: a pass over all neighbours,
// and some hundred distances.
void check_start(const KnnGraph& start, const MatrixView& rows, Metric metric);

}  // namespace kith
