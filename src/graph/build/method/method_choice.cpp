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
constexpr double kMostRowsPerCell = 1500;  // of up to a hundred million rows
// What a pair takes beside its columns.
constexpr double kPairColumns = 32;
// What a row takes by cells beside its pairs: at all, for each column, and for its list in each probe.
constexpr double kCellsRow = 200000;
constexpr double kCellsRowColumn = 4000;
constexpr double kCellsProbe = 15000;
constexpr double kKeptPair = 3;  // a pair that products do not rule out
// What its list takes by NN-Descent with all rounds.
constexpr double kDescentOverhead = 110000 * 160;
constexpr double kDescentPairs = 9500;
// For products on a GPU, whose tiles are not full: those that rank a cell for a row, and those of a probed pair.
constexpr double kGpuRankProducts = 3;
constexpr double kGpuProbeProducts = 1.4;
// Where products leave pairs to keys: how many times as long a probed pair takes, and how much longer exact search,
// which searches rows near to each other by themselves.
constexpr double kGpuProbeKey = 1400;
constexpr double kGpuApart = 0.5;
// A pair takes some columns' time beside its own; wide rows keep the matrix units busier than those of 128 columns,
// which the rates are of.
constexpr double kGpuPairColumns = 43;
constexpr double kGpuWideColumn = 0.69;
constexpr double kGpuKeyColumns = 128;  // keys of wider rows take longer
// A column of a pair there, in products, where keys are none.
constexpr int64_t kLeastGpuColumns = 64;
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

// The number of rankings of cells for this number of probes.
double rankings(const GraphProblem& problem, double probes) {
  return std::ceil(probes / static_cast<double>(ranked_at_once(problem.rows)));
}

// What methods do on a GPU.
struct GpuCounts {
  Counts exact;
  Counts cells;
  Counts descent;

  GpuCounts(const GraphProblem& problem, const CellsWork& work) {
    const bool products = is_product_metric(problem.metric);
    const bool chi_square = problem.metric == Metric::chi_square;
    const auto rows = static_cast<double>(problem.rows);
    const auto cell_count = static_cast<double>(default_cells(problem.rows, problem.k));
    const auto cols = static_cast<double>(problem.cols);
    const double other = static_cast<double>(std::max(problem.cols, kLeastGpuColumns)) *
                         (chi_square ? kGpuChiSquareColumn : kGpuOtherColumn);
    const double pair = 2 * (products ? kGpuPairColumns + kGpuWideColumn * cols : other);
    const double list = (static_cast<double>(problem.k) + 15) / 30;
    const double ranked = rankings(problem, work.probes) * std::min(cell_count, static_cast<double>(kMostCellsRanked));
    exact = {{CostUnit::graph_start, 1}, {CostUnit::graph_product, rows * rows * (1 + kGpuApart * work.blur) * pair}};
    cells = {{CostUnit::graph_cells_start, 1},
             {CostUnit::graph_product,
              (rows * kGpuRankProducts * ranked + kGpuProbeProducts * std::pow(kGpuProbeKey, work.blur) * work.pairs) *
                  pair},
             {CostUnit::graph_cells_row, rows * list * std::max(1.0, cols / kGpuKeyColumns)},
             {CostUnit::graph_probe_row, rows * work.probes},
             {CostUnit::graph_tie, work.ties}};
    const double columns = (cols + 32) / 160;
    const double lists = static_cast<double>(default_list_length(problem.k)) / 64;
    const CostUnit row = products     ? CostUnit::graph_descent_row
                         : chi_square ? CostUnit::graph_descent_row_chi_square
                                      : CostUnit::graph_descent_row_other;
    descent = {{CostUnit::graph_start, 1}, {row, rows * columns * lists}};
  }
};

// How methods compare is much the same on all GPUs.
double gpu_seconds(const Counts& counts) { return model_of(DeviceInfo()).seconds(counts); }

GraphCosts predict_gpu_costs(const GraphProblem& problem, const CellsWork& work) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const GpuCounts counts(problem, work);
  GraphCosts costs;
  costs.exact = gpu_seconds(counts.exact);
  costs.cells = is_product_metric(problem.metric) ? gpu_seconds(counts.cells) : kNever;
  costs.nn_descent = default_list_length(problem.k) > kLongestGpuList ? kNever : gpu_seconds(counts.descent);
  return costs;
}

}  // namespace

int64_t default_cells(int64_t rows, int64_t k) {
  const auto count = static_cast<double>(rows);
  const double grown = std::min(kRowsPerCell * std::pow(std::max(1.0, count / 1e6), 0.24), kMostRowsPerCell);
  // Beyond a hundred million rows ranking cells (rows x cells) would take longer than comparing rows: cells grow, so that
  // both take about as long at a billion.
  const double size = std::max(grown * std::pow(std::max(1.0, count / 1e8), 0.6), 2.0 * static_cast<double>(k));
  return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(rows) / size));
}

int64_t start_probes(const GraphProblem& problem, int64_t cells) {
  constexpr int64_t kFewest = 4;
  const auto enough = static_cast<int64_t>(1.25 * predicted_probes(problem));
  return std::min(cells, std::max(kFewest, enough));
}

GraphStart default_start(Metric metric) { return metric == Metric::hamming ? GraphStart::random : GraphStart::cells; }

CellsWork balanced_work(const GraphProblem& problem, double probes) {
  const auto rows = static_cast<double>(problem.rows);
  return {probes, rows * probes * rows / static_cast<double>(default_cells(problem.rows, problem.k))};
}

CellsWork likely_work(const GraphProblem& problem) {
  const auto cells = static_cast<double>(default_cells(problem.rows, problem.k));
  return balanced_work(problem, std::min(predicted_probes(problem), cells));
}

GraphCosts predict_graph_costs(const GraphProblem& problem, const CellsWork& work, DeviceKind device) {
  if (device == DeviceKind::cuda) return predict_gpu_costs(problem, work);
  const auto rows = static_cast<double>(problem.rows);
  const auto cols = static_cast<double>(problem.cols);
  const double pair = (cols + kPairColumns) * column_cost(problem.metric);
  const double list = (static_cast<double>(problem.k) + 15) / 30;
  const auto cells = static_cast<double>(default_cells(problem.rows, problem.k));
  const double row = kCellsRow + kCellsRowColumn * cols + kCellsProbe * work.probes;
  const double compared = (work.blur >= 1 ? kKeptPair : 1) * work.pairs;
  GraphCosts costs;
  costs.exact = rows * rows * pair;
  costs.cells = is_product_metric(problem.metric)
                    ? pair * (rows * rankings(problem, work.probes) * cells + compared) + rows * row * list
                    : std::numeric_limits<double>::infinity();
  costs.nn_descent = rows * (pair * kDescentPairs + kDescentOverhead) *
                     (static_cast<double>(default_list_length(problem.k)) / 64);
  return costs;
}

bool is_refused(const GraphProblem& problem, double pairs, DeviceKind device) {
  const double products = pairs * static_cast<double>(problem.cols);
  return products > (device == DeviceKind::cuda ? problem.most.gpu_products : problem.most.cpu_products);
}

GraphMethod first_method(const GraphProblem& problem, DeviceKind device) {
  if (problem.recall == 1) return GraphMethod::exact;
  const GraphCosts costs = predict_graph_costs(problem, balanced_work(problem, 1), device);
  if (is_product_metric(problem.metric)) return costs.exact <= costs.cells ? GraphMethod::exact : GraphMethod::cells;
  return costs.exact <= costs.nn_descent ? GraphMethod::exact : GraphMethod::nn_descent;
}

GraphMethod choose_graph_method(const GraphProblem& problem, const CellsWork& work, bool descends, DeviceKind device) {
  if (!is_product_metric(problem.metric)) return first_method(problem, device);
  constexpr double kSurelySooner = 0.5;  // how many rounds there will be is not known
  GraphCosts costs = predict_graph_costs(problem, work, device);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (is_refused(problem, problem.pairs(), device)) costs.exact = kNever;
  if (is_refused(problem, work.pairs, device)) costs.cells = kNever;
  const double sure = std::min(costs.exact, costs.cells);
  // Rounds may miss the recall: not where nothing could follow but cells, which would have reached it.
  const bool exact_follows = costs.exact < kNever;
  if (descends && exact_follows && costs.nn_descent < kSurelySooner * sure) return GraphMethod::nn_descent;
  if (sure == kNever) return GraphMethod::nn_descent;
  return costs.exact <= costs.cells ? GraphMethod::exact : GraphMethod::cells;
}

int64_t affordable_probes(const GraphProblem& problem, int64_t cells, DeviceKind device) {
  const auto afforded = [&](int64_t probes) {
    const CellsWork work = balanced_work(problem, static_cast<double>(probes));
    const GraphCosts costs = predict_graph_costs(problem, work, device);
    return costs.cells <= costs.exact && !is_refused(problem, work.pairs, device);
  };
  int64_t low = 1;  // costs grow with the probes
  for (int64_t high = cells; low < high;) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (afforded(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace kith
