#include "graph/build/method/approximate_graph.hpp"

#include "core/cpu_target.hpp"
#include "exact/search_limit.hpp"
#include "graph/build/cells/cell_workspace_cuda.hpp"
#include "graph/build/cells/cells.hpp"
#include "graph/build/method/method_choice.hpp"
#include "graph/build/nn_descent/descent_wish.hpp"
#include "graph/build/nn_descent/descent_workspace.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/lists/with_graph_lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kith {
namespace {

GraphProblem problem_of(const MatrixView& x, const KnnGraphParams& params) {
  return {x.rows(), x.cols(), params.k, params.metric, params.recall};
}

CellsWish cells_wish(const MatrixView& x, const KnnGraphParams& params) {
  CellsWish wish;
  wish.metric = params.metric;
  wish.k = params.k;
  wish.cells = std::min(params.cells.value_or(default_cells(x.rows(), params.k)), x.rows());
  wish.probes = std::min(params.probes.value_or(default_probes(problem_of(x, params), wish.cells)), wish.cells);
  wish.likely = likely_probes(problem_of(x, params), wish.cells);
  wish.recall = params.recall;
  wish.seed = params.seed;
  return wish;
}

// The cells that NN-Descent begins with.
CellsWish start_wish(const MatrixView& x, const KnnGraphParams& params) {
  CellsWish wish = cells_wish(x, params);
  wish.probes = start_probes(problem_of(x, params), wish.cells);
  wish.keeps_order = true;
  return wish;
}

DescentWish descent_wish(const KnnGraphParams& params, int64_t list_length) {
  return descent_wish(params, params.metric, params.k, list_length);
}

int64_t length_of(const KnnGraphParams& params) {
  return params.method == GraphMethod::cells ? params.k : params.list_length.value_or(default_list_length(params.k));
}

GraphStart start_of(const KnnGraphParams& params) {
  const GraphStart start = params.start.value_or(GraphStart::automatic);
  return start == GraphStart::automatic ? default_start(params.metric) : start;
}

void put_descent(const DescentWish& wish, GraphStart start, int64_t length, const KnnGraphParams& params,
                 GraphReport& report) {
  report.parameters.push_back({"start", std::string(name_of(start))});
  report.parameters.push_back({"samples", wish.rules.samples});
  report.parameters.push_back({"list_length", length});
  report.parameters.push_back({"iterations", wish.iterations});
  report.parameters.push_back({"delta", wish.delta});
  report.parameters.push_back({"update", std::string(name_of(params.update.value_or(GraphUpdate::selective)))});
}

// Rounds of NN-Descent over the lists of k that were begun with, made long for them.
BuildOutcome descend(GraphLists& lists, const DescentWish& wish, int64_t length, const BuildOutcome& begun,
                     const Resources& resources) {
  lists.resize(length);
  BuildOutcome outcome = run_descent(lists, wish, resources);
  outcome.rounds.insert(outcome.rounds.begin(), begun.rounds.begin(), begun.rounds.end());
  return outcome;
}

BuildOutcome build_cells(GraphLists& lists, const MatrixView& x, const KnnGraphParams& params, const CellsEnd& end,
                         GraphReport& report, const Resources& resources) {
  CellsWish wish = cells_wish(x, params);
  wish.gives_up = end.gives_up;
  wish.keeps_order = end.goes_on;
  lists.begin(params.k);
  BuildOutcome outcome = build_by_cells(lists, wish, resources);
  report.parameters.push_back({"cells", wish.cells});
  report.parameters.push_back({"probes", outcome.probes});
  if (outcome.reached || !end.goes_on) return outcome;
  resources.log(LogLevel::info, fmt::format("cells do not reach a recall of {} on these rows; nn_descent goes on",
                                            params.recall));
  const int64_t length = default_list_length(params.k);
  const DescentWish rounds = descent_wish(params, length);
  report.method = name_of(GraphMethod::nn_descent);
  put_descent(rounds, GraphStart::cells, length, params, report);
  return descend(lists, rounds, length, outcome, resources);
}

BuildOutcome build_descent(GraphLists& lists, const MatrixView& x, const KnnGraphParams& params, GraphReport& report,
                           const Resources& resources) {
  const GraphStart start = start_of(params);
  const int64_t length = length_of(params);
  const DescentWish wish = descent_wish(params, length);
  put_descent(wish, start, length, params, report);
  if (start == GraphStart::random) {
    lists.begin(length);
    lists.add_random_rows(params.seed, 0);
    return run_descent(lists, wish, resources);
  }
  // Lists of k neighbours by cells, which are fast to keep; long ones where rounds are to follow.
  lists.begin(params.k);
  BuildOutcome begun = build_by_cells(lists, start_wish(x, params), resources);
  return begun.reached ? begun : descend(lists, wish, length, begun, resources);
}

}  // namespace

GraphReport approximate_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                              const CellsEnd& end, const Resources& resources) {
  const bool by_cells = params.method == GraphMethod::cells;
  GraphReport report;
  report.method = name_of(params.method);
  report.parameters.push_back({"recall", params.recall});
  report.parameters.push_back({"seed", static_cast<int64_t>(params.seed)});
  if (!by_cells) check_descent(descent_wish(params, length_of(params)).rules, length_of(params), resources.device());
  const GraphRowsWish rows{params.metric, params.k, params.seed, params.check_finite};
  with_graph_lists(x, rows, resources, [&](GraphLists& lists) {
    const BuildOutcome outcome = by_cells ? build_cells(lists, x, params, end, report, resources)
                                          : build_descent(lists, x, params, report, resources);
    lists.write(out);
    put_outcome(outcome, lists.control_rows(), report);
  });
  warn_if_missed(report, params.recall,
                 by_cells ? "allow more probes, or use nn_descent or exact"
                          : "allow longer lists, more samples or iterations, or use exact",
                 resources);
  return report;
}

int64_t approximate_graph_bytes(const MatrixView& x, const KnnGraphParams& params, const Resources& resources) {
  const CpuExtensions cpu = cpu_extensions();
  const KeyKind kind = key_kind(params.metric);
  const int64_t length = length_of(params);
  const bool by_cells = params.method == GraphMethod::cells;
  const PanelFormat format = choose_pair_format(kind, x.dtype(), x.cols(), cpu);
  const int64_t kept = PairRows::bytes_for(x.rows(), x.cols(), kind, x.dtype(), cpu) + 4 * x.rows();
  const Resources on_cpu = resources.with_device(Device::cpu());
  const int64_t control_rows = std::min(kControlRows, x.rows());
  const SearchShape control{.queries = control_rows, .rows = x.rows(), .cols = x.cols(), .query_dtype = x.dtype(),
                            .base_dtype = x.dtype(), .metric = params.metric};
  const int64_t control_bytes = smallest_host_bytes(control, {.k = params.k + 1}, RowFilter(), on_cpu) +
                                neighbors_bytes(control_rows, params.k + 1) +
                                control_rows * x.cols() * size_of(x.dtype());
  // What comes one after the other, beside the rows and their order.
  int64_t most = control_bytes;
  const bool cuts = by_cells || start_of(params) == GraphStart::cells;
  if (cuts) {
    const CellsWish wish = by_cells ? cells_wish(x, params) : start_wish(x, params);
    const PanelFormat ordered = choose_ordered_format(kind, x.dtype(), x.cols(), cpu);
    const ComparedCells compared{ordered, product_columns(kind, ordered, x.cols()), params.k};
    most = std::max(most, WorkingLists::bytes_for(x.rows(), params.k) + cells_bytes(x, compared, wish, on_cpu));
  }
  if (!by_cells) {
    DescentRules rules = descent_wish(params, length).rules;
    rules.random_lists = true;  // which takes more
    const int64_t before = cuts ? WorkingLists::bytes_for(x.rows(), params.k) : control_bytes;
    const int64_t steps = descent_steps_bytes_cpu(x.rows(), x.cols(), format, rules, resources.threads());
    most = std::max(most, WorkingLists::bytes_for(x.rows(), length) + std::max(before, steps));
  }
  return kept + most;
}

int64_t approximate_graph_device_bytes(const MatrixView& x, const KnnGraphParams& params) {
  const bool by_cells = params.method == GraphMethod::cells;
  int64_t bytes = 0;
  if (by_cells || start_of(params) == GraphStart::cells) {
    const CellsWish wish = by_cells ? cells_wish(x, params) : start_wish(x, params);
    bytes = enough_for_cells(x, params.k, {params.metric, wish.cells, wish.probes, wish.seed});
  }
  if (by_cells) return bytes;
  const int64_t length = length_of(params);
  return std::max(bytes, enough_for_descent(x, params.metric, params.k, length, descent_wish(params, length).rules));
}

}  // namespace kith
