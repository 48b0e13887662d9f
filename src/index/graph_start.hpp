// A graph of the first vectors of an index, of whose neighbours the index's own graph is built: whether it is one.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

namespace kith {

// Checks a graph and rows, both in host memory. InvalidArgument if it is of other rows: another number of them, another
// metric, neighbours that are no rows, or distances of a sample that are not those of the rows. Cost: a look at each
// neighbour, and some hundred distances.
void check_start(const KnnGraph& start, const MatrixView& rows, Metric metric);

}  // namespace kith
