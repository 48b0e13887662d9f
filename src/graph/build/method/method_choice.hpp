// Which method builds a graph soonest, and the parameters that nobody gave: pure functions of the problem and of what
// is foreseen of its rows.
//
// Costs on the CPU are in pairs compared by a product of one column, as exact search compares them; what lists, sorting
// and gathering take is counted in the same unit, measured on twenty kinds of rows. On a GPU they are seconds of an
// H200. Before anything is known of the rows, each is taken to need about as many probes as
//
//   17 (rows / 100,000)^0.36 sqrt(0.01 / (1 - recall))
//
// where cells have 500 rows: measured on SIFT and GloVe. What these rows need is foreseen once they are cut into cells
// (probe_forecast.hpp), and then decides.
#pragma once

#include <kith/device.hpp>
#include <kith/knn_graph.hpp>

#include <algorithm>
#include <cstdint>

namespace kith {

// The most products of pairs, as many for each as it has columns, that are compared unasked: on the CPU all pairs of about
// 1,250,000 rows of 128 columns, on a GPU of 12,500,000.
struct GraphBounds {
  double cpu_products = 2e14;
  double gpu_products = 2e16;
  // Whose costs and bounds choose; automatic: those of the device that builds. Who needs the same graph from every
  // device names one.
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

  // How many pairs exact search compares.
  double pairs() const { return static_cast<double>(rows) * static_cast<double>(rows); }
};

// Infinite where a method cannot do it.
struct GraphCosts {
  double exact = 0;
  double cells = 0;
  double nn_descent = 0;

  double least() const { return std::min(exact, std::min(cells, nn_descent)); }
};
// What cells do: probes of every row, and the pairs that these compare in all.
struct CellsWork {
  double probes = 0;
  double pairs = 0;
  double ties = 0;   // pairs as near as the last neighbour of a row, beyond those that it keeps
  double blur = 0;   // how much is left to keys, from 0 to 1, since products tell little of these rows
};
// Where all cells have as many rows.
CellsWork balanced_work(const GraphProblem& problem, double probes);
// The work for rows like SIFT.
CellsWork likely_work(const GraphProblem& problem);

// On the CPU, or on a GPU.
GraphCosts predict_graph_costs(const GraphProblem& problem, const CellsWork& work, DeviceKind device);

// Whether so many pairs of rows are too many to be compared unasked.
bool is_refused(const GraphProblem& problem, double pairs, DeviceKind device);

// Before the rows are looked at: exact where nothing can be sooner, nn_descent where cells cannot compare, else cells,
// which foresee more.
GraphMethod first_method(const GraphProblem& problem, DeviceKind device);
// Once the work of cells is known. `descends`: rounds of NN-Descent would begin with most neighbours.
GraphMethod choose_graph_method(const GraphProblem& problem, const CellsWork& work, bool descends, DeviceKind device);

// Probes that a row may make by cells until exact search would have been done sooner, or until they are refused: for
// cells that were chosen and not asked for.
int64_t affordable_probes(const GraphProblem& problem, int64_t cells, DeviceKind device);

// About 500 rows each up to a million rows, three times as many at a hundred million, six times at a billion; more where
// k is large.
int64_t default_cells(int64_t rows, int64_t k);
// How nn_descent starts.
GraphStart default_start(Metric metric);
// Probes of its start by cells: about what the recall needs on data such as SIFT, so that rounds follow on harder data
// alone: a pair of a round takes longer than one of cells, whose rows lie together.
int64_t start_probes(const GraphProblem& problem, int64_t cells);

}  // namespace kith
