// Which method builds a graph soonest, and the parameters that nobody gave: pure functions of the problem.
//
// Costs on the CPU are in pairs compared by a product of one column, as exact search compares them; what lists, sorting and
// gathering take is counted in the same unit, measured on SIFT. On a GPU they are seconds of an H200. A row needs about as many probes as
//
//   17 (rows / 100,000)^0.36 sqrt(0.01 / (1 - recall))
//
// where cells have 500 rows: measured on SIFT and GloVe. Data of a higher intrinsic dimension needs more, which shows
// while the work goes on.
#pragma once

#include <kith/device.hpp>
#include <kith/knn_graph.hpp>

#include <algorithm>
#include <cstdint>

namespace kith {

struct GraphProblem {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t k = 0;
  Metric metric = Metric::l2;
  double recall = 0.99;
};

// Infinite where a method cannot do it.
struct GraphCosts {
  double exact = 0;
  double cells = 0;
  double nn_descent = 0;

  double least() const { return std::min(exact, std::min(cells, nn_descent)); }
};
// On the CPU, or on a GPU.
GraphCosts predict_graph_costs(const GraphProblem& problem, DeviceKind device = DeviceKind::cpu);
// Not automatic.
GraphMethod choose_graph_method(const GraphProblem& problem, DeviceKind device = DeviceKind::cpu);

// Probes that a row may make by cells until another method would have been done sooner: for cells that were chosen and not
// asked for. At least default_probes().
int64_t affordable_probes(const GraphProblem& problem, int64_t cells, DeviceKind device);

// About 500 rows each up to a million rows, three times as many at a hundred million; more where k is large.
int64_t default_cells(int64_t rows, int64_t k);
// At most so many for a row of the cells there are.
int64_t default_probes(const GraphProblem& problem, int64_t cells);
// What data such as SIFT needs.
int64_t likely_probes(const GraphProblem& problem, int64_t cells);
// Of nn_descent.
GraphStart default_start(Metric metric);
// Of its start by cells: about what the recall needs on data such as SIFT, so that rounds follow on harder data alone: a
// pair of a round takes longer than one of cells, whose rows lie together.
int64_t start_probes(const GraphProblem& problem, int64_t cells);

}  // namespace kith
