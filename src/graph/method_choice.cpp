#include "graph/method_choice.hpp"

#include "core/divide.hpp"
#include "graph/cells/cell_params.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr double kRowsPerCell = 500;
constexpr double kMostRowsPerCell = 1500;
// What a pair takes beside its columns.
constexpr double kPairColumns = 32;
// What a row's lists take by cells, and by NN-Descent with all its rounds, in pairs of 128 columns.
constexpr double kCellsOverhead = 15000 * 160;
constexpr double kDescentOverhead = 110000 * 160;
constexpr double kDescentPairs = 9500;
// On a GPU: products a second, and what cells take beside them, in all and for a row.
constexpr double kGpuProducts = 4.3e14;
constexpr double kGpuCellsStart = 0.02;
constexpr double kGpuCellsRow = 5e-8;
// A probe of a row: more than its products, since tiles are not full, and what is done for each row.
constexpr double kGpuProbeProducts = 1.5;
constexpr double kGpuProbeRow = 5e-10;

bool is_product_metric(Metric metric) {
  return metric == Metric::l2 || metric == Metric::sqeuclidean || metric == Metric::cosine ||
         metric == Metric::inner_product;
}

// A column of a pair, in products.
double column_cost(Metric metric) {
  switch (metric) {
    case Metric::l1:
    case Metric::linf: return 4;
    case Metric::chi_square: return 16;
    case Metric::hamming: return 0.25;
    default: return 1;
  }
}

double predicted_probes(const GraphProblem& problem) {
  const double missing = std::max(1 - problem.recall, 1e-6);
  return std::max(1.0, 17 * std::pow(static_cast<double>(problem.rows) / 1e5, 0.36) * std::sqrt(0.01 / missing));
}

// In seconds of an H200: how methods compare is much the same on others.
struct GpuCosts {
  double exact;
  double cells_start;  // with no probe
  double probe;

  explicit GpuCosts(const GraphProblem& problem) {
    const auto rows = static_cast<double>(problem.rows);
    const auto cells = static_cast<double>(default_cells(problem.rows, problem.k));
    const bool product = is_product_metric(problem.metric);
    const double pair = 2 * static_cast<double>(problem.cols) * (product ? 1 : 30) / kGpuProducts;
    const double list = (static_cast<double>(problem.k) + 15) / 30;
    exact = rows * rows * pair;
    cells_start = kGpuCellsStart + rows * (2 * pair * std::min(cells, static_cast<double>(kMostCellsRanked)) + kGpuCellsRow * list);
    probe = rows * (kGpuProbeProducts * pair * rows / cells + kGpuProbeRow);
  }
};

GraphCosts predict_gpu_costs(const GraphProblem& problem) {
  const GpuCosts times(problem);
  const auto cells = static_cast<double>(default_cells(problem.rows, problem.k));
  GraphCosts costs;
  costs.exact = times.exact;
  costs.cells = is_product_metric(problem.metric)
                    ? times.cells_start + times.probe * std::min(predicted_probes(problem), cells)
                    : std::numeric_limits<double>::infinity();
  costs.nn_descent = std::numeric_limits<double>::infinity();  // it has no steps there
  return costs;
}

}  // namespace

int64_t default_cells(int64_t rows, int64_t k) {
  const double grown = kRowsPerCell * std::pow(std::max(1.0, static_cast<double>(rows) / 1e6), 0.24);
  const double size = std::max(std::min(grown, kMostRowsPerCell), 2.0 * static_cast<double>(k));
  return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(rows) / size));
}

int64_t default_probes(const GraphProblem& problem, int64_t cells) {
  constexpr int64_t kFewest = 32;
  constexpr double kReserve = 2.5;  // harder data than SIFT needs more
  const auto most = static_cast<int64_t>(kReserve * predicted_probes(problem));
  return std::min(cells, std::max(kFewest, most));
}

int64_t likely_probes(const GraphProblem& problem, int64_t cells) {
  return std::min(cells, static_cast<int64_t>(std::ceil(predicted_probes(problem))));
}

int64_t start_probes(const GraphProblem& problem, int64_t cells) {
  constexpr int64_t kFewest = 4;
  const auto enough = static_cast<int64_t>(1.25 * predicted_probes(problem));
  return std::min(cells, is_product_metric(problem.metric) ? std::max(kFewest, enough) : kFewest);
}

int64_t default_list_length(int64_t k) { return std::max<int64_t>(64, round_up(k + k / 4, 32)); }
int64_t default_samples(int64_t list_length) { return std::clamp<int64_t>(list_length / 2, 1, 32); }
GraphStart default_start(Metric metric) { return metric == Metric::hamming ? GraphStart::random : GraphStart::cells; }

GraphCosts predict_graph_costs(const GraphProblem& problem, DeviceKind device) {
  if (device == DeviceKind::cuda) return predict_gpu_costs(problem);
  const auto rows = static_cast<double>(problem.rows);
  const double pair = (static_cast<double>(problem.cols) + kPairColumns) * column_cost(problem.metric);
  const double list = (static_cast<double>(problem.k) + 15) / 30;
  const auto cells = static_cast<double>(default_cells(problem.rows, problem.k));
  GraphCosts costs;
  costs.exact = rows * rows * pair;
  const double probes = std::min(predicted_probes(problem), cells);
  costs.cells = is_product_metric(problem.metric)
                    ? rows * (pair * (cells + probes * rows / cells) + kCellsOverhead * list)
                    : std::numeric_limits<double>::infinity();
  costs.nn_descent = rows * (pair * kDescentPairs + kDescentOverhead) *
                     (static_cast<double>(default_list_length(problem.k)) / 64);
  return costs;
}

GraphMethod choose_graph_method(const GraphProblem& problem, DeviceKind device) {
  if (problem.recall == 1) return GraphMethod::exact;
  const GraphCosts costs = predict_graph_costs(problem, device);
  if (costs.exact <= std::min(costs.cells, costs.nn_descent)) return GraphMethod::exact;
  return costs.cells <= costs.nn_descent ? GraphMethod::cells : GraphMethod::nn_descent;
}

int64_t affordable_probes(const GraphProblem& problem, int64_t cells, DeviceKind device) {
  const int64_t usual = default_probes(problem, cells);
  if (device != DeviceKind::cuda) return usual;
  const GraphCosts costs = predict_graph_costs(problem, device);
  const GpuCosts times(problem);
  const double affordable = (std::min(costs.exact, costs.nn_descent) - times.cells_start) / times.probe;
  return std::min(cells, std::max(usual, static_cast<int64_t>(std::min(affordable, 1e6))));
}

}  // namespace kith
