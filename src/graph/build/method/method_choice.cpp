#include "graph/build/method/method_choice.hpp"

#include "core/machine_model.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"

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
// Of products on a GPU, whose tiles are not full: those that rank a cell for a row, and those of a pair that is probed.
constexpr double kGpuRankProducts = 3;
constexpr double kGpuProbeProducts = 0.9;
// A column of a pair there, in products, where keys are none.
constexpr double kGpuChiSquareColumn = 400;  // divisions in f64
constexpr double kGpuOtherColumn = 30;
constexpr int64_t kLongestGpuList = 8192;  // of rounds there

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

// What methods do on a GPU.
struct GpuCounts {
  Counts exact;
  Counts cells_start;  // with no probe
  Counts probe;
  Counts descent;

  explicit GpuCounts(const GraphProblem& problem) {
    const bool products = is_product_metric(problem.metric);
    const bool chi_square = problem.metric == Metric::chi_square;
    const auto rows = static_cast<double>(problem.rows);
    const auto cells = static_cast<double>(default_cells(problem.rows, problem.k));
    const double column = products ? 1 : chi_square ? kGpuChiSquareColumn : kGpuOtherColumn;
    const double pair = 2 * static_cast<double>(problem.cols) * column;
    const double list = (static_cast<double>(problem.k) + 15) / 30;
    const double ranked = std::min(cells, static_cast<double>(kMostCellsRanked));
    exact = {{CostUnit::graph_start, 1}, {CostUnit::graph_product, rows * rows * pair}};
    cells_start = {{CostUnit::graph_cells_start, 1},
                   {CostUnit::graph_product, rows * kGpuRankProducts * ranked * pair},
                   {CostUnit::graph_cells_row, rows * list}};
    probe = {{CostUnit::graph_product, rows * kGpuProbeProducts * rows / cells * pair}, {CostUnit::graph_probe_row, rows}};
    const double columns = (static_cast<double>(problem.cols) + 32) / 160;
    const double lists = static_cast<double>(default_list_length(problem.k)) / 64;
    const CostUnit row = products     ? CostUnit::graph_descent_row
                         : chi_square ? CostUnit::graph_descent_row_chi_square
                                      : CostUnit::graph_descent_row_other;
    descent = {{CostUnit::graph_start, 1}, {row, rows * columns * lists}};
  }
};

// How methods compare is much the same on all GPUs.
double gpu_seconds(const Counts& counts) { return model_of(DeviceInfo()).seconds(counts); }

GraphCosts predict_gpu_costs(const GraphProblem& problem) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const GpuCounts counts(problem);
  const double probes =
      std::min(predicted_probes(problem), static_cast<double>(default_cells(problem.rows, problem.k)));
  GraphCosts costs;
  costs.exact = gpu_seconds(counts.exact);
  costs.cells = is_product_metric(problem.metric) ? gpu_seconds(counts.cells_start) + probes * gpu_seconds(counts.probe)
                                                  : kNever;
  costs.nn_descent = default_list_length(problem.k) > kLongestGpuList ? kNever : gpu_seconds(counts.descent);
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
  return std::min(cells, std::max(kFewest, enough));
}

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
  const GpuCounts counts(problem);
  const double affordable =
      (std::min(costs.exact, costs.nn_descent) - gpu_seconds(counts.cells_start)) / gpu_seconds(counts.probe);
  return std::min(cells, std::max(usual, static_cast<int64_t>(std::min(affordable, 1e6))));
}

}  // namespace kith
