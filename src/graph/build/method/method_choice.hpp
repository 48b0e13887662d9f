// Chooses the fastest method of building a graph, and default parameters: pure functions of the problem and of what is
// known about its rows.
//
// Costs on the CPU are in units of a multiplication in exact search's products of pairs; the costs of lists, sorting
// and gathering are in the same unit, measured on twenty kinds of rows. On a GPU they are seconds of an H200. Before
// anything is known about the rows, each is assumed to need about
//
//   17 (rows / 100,000)^0.36 sqrt(0.01 / (1 - recall))
//
// probes of cells of 500 rows, as measured on SIFT and GloVe. Once the rows are assigned to cells, the forecast for
// these rows (probe_forecast.hpp) is used instead.
#pragma once

#include <kith/device.hpp>
#include <kith/knn_graph.hpp>

#include <algorithm>
#include <cstdint>

namespace kith {

// The most multiplications (pairs x columns) that are done without an explicit request: on the CPU those of all pairs
// of about 1,250,000 rows of 128 columns, on a GPU of 12,500,000.
struct GraphBounds {
  double cpu_products = 2e14;
  double gpu_products = 2e16;
  // The device whose costs and bounds are used; automatic: the one that builds. Naming one gives the same graph on
  // every device.
  DeviceKind judged = DeviceKind::automatic;

  DeviceKind judge(DeviceKind builds) const { return judged == DeviceKind::automatic ? builds : judged; }
};

struct GraphProblem {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t k = 0;
  Metric metric = Metric::l2;
  double recall = 0.99;
  GraphBounds most = {};

  // The number of pairs that exact search compares.
  double pairs() const { return static_cast<double>(rows) * static_cast<double>(rows); }
};

// Infinite for a method that cannot solve the problem.
struct GraphCosts {
  double exact = 0;
  double cells = 0;
  double nn_descent = 0;

  double least() const { return std::min(exact, std::min(cells, nn_descent)); }
};
// The work of cells: probes per row, and the pairs compared in total.
struct CellsWork {
  double probes = 0;
  double pairs = 0;
  double ties = 0;   // pairs that tie with the last neighbour of a row, beyond those kept
  double blur = 0;   // fraction of pairs that need keys, from 0 to 1, because products are too imprecise
};
// The work if all cells have the same size.
CellsWork balanced_work(const GraphProblem& problem, double probes);
// The work expected for rows like SIFT.
CellsWork likely_work(const GraphProblem& problem);

// Costs on the CPU or on a GPU.
GraphCosts predict_graph_costs(const GraphProblem& problem, const CellsWork& work, DeviceKind device);

// Whether that many pairs of rows are too many to be compared without an explicit request.
bool is_refused(const GraphProblem& problem, double pairs, DeviceKind device);

// The choice before the rows are read: exact if nothing can be faster, nn_descent if cells do not support the metric,
// else cells, whose forecast decides later.
GraphMethod first_method(const GraphProblem& problem, DeviceKind device);
// The choice once the work of cells is known. `descends`: NN-Descent would start with most neighbours found.
GraphMethod choose_graph_method(const GraphProblem& problem, const CellsWork& work, bool descends, DeviceKind device);

// The number of probes per row up to which cells are faster than exact search and not refused: for cells chosen by
// default.
int64_t affordable_probes(const GraphProblem& problem, int64_t cells, DeviceKind device);

// Cells of about 500 rows up to a million rows, three times larger at a hundred million, twelve times at a billion;
// larger still for large k.
int64_t default_cells(int64_t rows, int64_t k);
// The default start of nn_descent.
GraphStart default_start(Metric metric);
// The number of probes of its start by cells: about what the recall needs on data such as SIFT, so that only harder
// data needs rounds: a pair takes longer in a round than in cells, whose rows are contiguous.
int64_t start_probes(const GraphProblem& problem, int64_t cells);

}  // namespace kith
