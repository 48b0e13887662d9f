// The rounds of a graph on a GPU: rows, lists and control rows stay there from the first round to the last.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "graph/graph_backend.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// What is asked of a collection's rows.
struct GraphRows {
  Metric metric = Metric::l2;
  int64_t k = 15;
  uint64_t seed = 0;         // of the control rows
  bool check_finite = true;  // refuse what cannot be compared, naming the row
};

// Rows in host memory are copied to the device. Work is enqueued on the resources' stream.
std::unique_ptr<GraphBackend> make_graph_backend_cuda(int device, const MatrixView& x, const GraphRows& wish,
                                                      const Resources& resources);

}  // namespace kith
