// The rounds of a graph on a GPU: rows, lists and control rows stay there from the first round to the last.
#pragma once

#include <kith/custom_metric_cuda.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "graph/graph_backend.hpp"
#include "graph/graph_rows.hpp"

#include <memory>

namespace kith {

// Rows in host memory are copied to the device. Work is enqueued on the resources' stream.
std::unique_ptr<GraphBackend> make_graph_backend_cuda(int device, const MatrixView& x, const GraphRowsWish& wish,
                                                      const Resources& resources);

// By a metric of the user's, which must outlive it; the wish's says only that smaller is nearer. Lists begin with random
// rows; there are no cells. InvalidArgument where the metric is not symmetric.
std::unique_ptr<GraphBackend> make_custom_graph_backend_cuda(int device, const MatrixView& x, const GraphRowsWish& wish,
                                                             const custom::GraphMetric& metric,
                                                             const Resources& resources);

}  // namespace kith
