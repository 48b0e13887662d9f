#include "graph/build/method/method_choice.hpp"

#include "graph/build/cells/cell_params.hpp"
#include "graph/build/nn_descent/descent_wish.hpp"

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
// On a GPU, fitted to an H200 (bench/results/h200/graph_cuda.txt): products a second of all pairs; of cells what they
// take in all and for a row, and for its probes beside and within products (tiles are not full); what rounds take for a
// row.
constexpr double kGpuProducts = 4.3e14;
constexpr double kGpuStart = 0.004;
constexpr double kGpuCellsStart = 0.008;
constexpr double kGpuCellsRow = 3.5e-8;
constexpr double kGpuRankProducts = 3;
constexpr double kGpuProbeProducts = 0.9;
constexpr double kGpuProbeRow = 5.5e-10;
constexpr double kGpuDescentRow = 5e-7;
// Keys that are no products: a column of a pair, in products, and what rounds take for a row.
struct GpuKeyCost {
  double column;
  double descent_row;
};
constexpr GpuKeyCost kGpuProduct{1, kGpuDescentRow};
constexpr GpuKeyCost kGpuChiSquare{400, 1.5e-5};  // divisions in f64
constexpr GpuKeyCost kGpuOther{30, 4e-6};
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

const GpuKeyCost& gpu_key_cost(Metric metric) {
  if (is_product_metric(metric)) return kGpuProduct;
  return metric == Metric::chi_square ? kGpuChiSquare : kGpuOther;
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
  double descent;

  explicit GpuCosts(const GraphProblem& problem) {
    const auto rows = static_cast<double>(problem.rows);
    const auto cells = static_cast<double>(default_cells(problem.rows, problem.k));
    const GpuKeyCost& key = gpu_key_cost(problem.metric);
    const double pair = 2 * static_cast<double>(problem.cols) * key.column / kGpuProducts;
    const double list = (static_cast<double>(problem.k) + 15) / 30;
    const double ranked = std::min(cells, static_cast<double>(kMostCellsRanked));
    exact = kGpuStart + rows * rows * pair;
    cells_start = kGpuCellsStart + rows * (kGpuRankProducts * pair * ranked + kGpuCellsRow * list);
    probe = rows * (kGpuProbeProducts * pair * rows / cells + kGpuProbeRow);
    const double columns = (static_cast<double>(problem.cols) + 32) / 160;
    const double lists = static_cast<double>(default_list_length(problem.k)) / 64;
    descent = default_list_length(problem.k) > kLongestGpuList
                  ? std::numeric_limits<double>::infinity()
                  : kGpuStart + rows * key.descent_row * columns * lists;
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
  costs.nn_descent = times.descent;
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
  const GpuCosts times(problem);
  const double affordable = (std::min(costs.exact, costs.nn_descent) - times.cells_start) / times.probe;
  return std::min(cells, std::max(usual, static_cast<int64_t>(std::min(affordable, 1e6))));
}

}  // namespace kith
