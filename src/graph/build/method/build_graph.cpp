#include "graph/build/method/build_graph.hpp"

#include <kith/error.hpp>
#include <kith/knn.hpp>

#include "core/within_limits.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/resolve_device.hpp"
#include "exact/search_checks.hpp"
#include "graph/build/cells/cells.hpp"
#include "graph/build/exact/exact_graph.hpp"
#include "graph/build/ggm/ggm_shards.hpp"
#include "graph/build/method/method_choice.hpp"
#include "graph/build/nn_descent/descent_workspace.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/lists/graph_lists.hpp"
#include "graph/lists/graph_share.hpp"
#include "ranks/parts.hpp"
#include "ranks/transfer.hpp"
#include "rows/finite_check.hpp"
#include "rows/narrowed_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace kith {
namespace {

// A graph may not depend on threads or free memory, and `automatic` chooses the method by the device: where both are
// left to us, the machine and the problem alone decide.
Device device_of(const MatrixView& x, const NeighborsView& out, const GraphProblem& problem, GraphMethod method,
                 const Resources& resources) {
  const GraphCosts costs = predict_graph_costs(problem, likely_work(problem), DeviceKind::cpu);
  const double products = method == GraphMethod::cells        ? costs.cells
                          : method == GraphMethod::nn_descent ? costs.nn_descent
                          : method == GraphMethod::ggm        ? costs.nn_descent
                          : method == GraphMethod::exact      ? costs.exact
                                                              : costs.least();
  Counts counts = graph_counts({x}, products);
  if (out.space.host_readable()) {
    counts.add(CostUnit::copied_byte, static_cast<double>(GraphOutputShape{out.queries, out.k}.bytes()));
  }
  return choose_device(
      {"a graph by " + std::string(name_of(method)),
       [&] { return fmt::format("graph of {} x {}", x.rows(), x.cols()); }, method == GraphMethod::automatic},
      {x.space(), out.space}, counts, {}, resources);
}

// Who builds a graph: this process, or one of several ranks with its share.
struct GraphRanks {
  const Resources& resources;
  const GraphShare* share = nullptr;
  int64_t rows_at_once = 0;  // whose lists ranks exchange together

  CellsParams share_of(CellsParams cells) const {
    cells.share = share;
    cells.joined_room = rows_at_once * cells.k;
    return cells;
  }
  DescentParams share_of(DescentParams rounds) const {
    rounds.gathered_rows = rows_at_once;
    return rounds;
  }
  bool are_parts() const { return share != nullptr && share->are_parts(); }
};

GraphProblem problem_of(const MatrixView& x, const KnnGraphParams& params) {
  return {x.rows(), x.cols(), params.k, params.metric, params.recall};
}

// The cells that NN-Descent begins with.
CellsParams start_params(const MatrixView& x, const KnnGraphParams& params) {
  CellsParams cells = cells_params(x.rows(), params);
  cells.probes = start_probes(problem_of(x, params), cells.cells);
  cells.keeps_order = true;
  return cells;
}

DescentParams descent_params(const KnnGraphParams& params, int64_t list_length) {
  return descent_params(params, params.metric, params.k, list_length);
}

int64_t length_of(const KnnGraphParams& params) {
  return params.method == GraphMethod::cells ? params.k : params.list_length.value_or(default_list_length(params.k));
}

GraphStart start_of(const KnnGraphParams& params) {
  const GraphStart start = params.start.value_or(GraphStart::automatic);
  return start == GraphStart::automatic ? default_start(params.metric) : start;
}

void put_descent(const DescentParams& rounds, GraphStart start, int64_t length, const KnnGraphParams& params,
                 GraphReport& report) {
  report.parameters.push_back({"start", std::string(name_of(start))});
  put_rounds(rounds, length, report);
  report.parameters.push_back({"update", std::string(name_of(params.update.value_or(GraphUpdate::selective)))});
}

void put_forecast(const CellSteps& steps, GraphReport& report) {
  const int64_t needed = steps.forecast().needed;
  if (needed > 0) report.forecast = {needed, steps.pairs(needed)};
}

// Rounds of NN-Descent over the lists of k that were begun with, made long for them.
BuildOutcome descend(GraphLists& lists, const DescentParams& rounds, int64_t length, const BuildOutcome& begun,
                     const GraphRanks& by) {
  lists.resize(length);
  BuildOutcome outcome = run_descent(lists, rounds, by.resources);
  outcome.rounds.insert(outcome.rounds.begin(), begun.rounds.begin(), begun.rounds.end());
  return outcome;
}

// The lists are begun by cells, with those probes at most.
BuildOutcome begin_by_cells(CellSteps& steps, GraphLists& lists, const CellsParams& cells, GraphReport& report,
                            const Resources& resources) {
  const BuildOutcome outcome = run_cells(steps, lists, cells, resources);
  report.parameters.push_back({"cells", cells.cells});
  report.parameters.push_back({"probes", outcome.probes});
  return outcome;
}

BuildOutcome build_cells(GraphLists& lists, const MatrixView& x, const KnnGraphParams& params, GraphReport& report,
                         const GraphRanks& by) {
  const Resources& resources = by.resources;
  const CellsParams cells = by.share_of(cells_params(x.rows(), params));
  lists.begin(params.k);
  const std::unique_ptr<CellSteps> steps = make_cell_steps(lists, cells);
  steps->cut();
  put_forecast(*steps, report);
  return begin_by_cells(*steps, lists, cells, report, resources);
}

BuildOutcome build_descent(GraphLists& lists, const MatrixView& x, const KnnGraphParams& params, GraphReport& report,
                           const GraphRanks& by) {
  const Resources& resources = by.resources;
  const GraphStart start = start_of(params);
  const int64_t length = length_of(params);
  const DescentParams rounds = by.share_of(descent_params(params, length));
  put_descent(rounds, start, length, params, report);
  if (start == GraphStart::random) {
    lists.begin(length);
    lists.add_random_rows(params.seed, 0);
    return run_descent(lists, rounds, resources);
  }
  // Lists of k neighbours by cells, which are fast to keep; long ones where rounds are to follow.
  lists.begin(params.k);
  const CellsParams begins = by.share_of(start_params(x, params));
  std::unique_ptr<CellSteps> steps = make_cell_steps(lists, begins);
  steps->cut();
  put_forecast(*steps, report);
  const BuildOutcome begun = begin_by_cells(*steps, lists, begins, report, resources);
  steps.reset();  // rounds take memory of their own
  return begun.reached ? begun : descend(lists, rounds, length, begun, by);
}

// Learns cells of the rows and, by what is foreseen then, goes on with what is soonest on these rows. None: that is
// exact search, and the lists are empty. Where it is soonest even if one probe were enough, cells are not learned;
// where it is even if all cells were alike, which makes the fewest pairs, the rows are not put into them. Both take
// products to tell as much of all rows as of the control rows.
std::optional<BuildOutcome> build_soonest(GraphLists& lists, const MatrixView& x, const KnnGraphParams& params,
                                          const GraphProblem& problem, GraphReport& report,
                                          const GraphRanks& by) {
  const Resources& resources = by.resources;
  const SoonestMethod choice(problem, params, resources.device().kind);
  const bool may_descend = choice.may_descend();
  CellsParams cells = by.share_of(choice.params());
  const int64_t length = default_list_length(params.k);
  const DescentParams rounds = by.share_of(descent_params(params, length));
  lists.begin(params.k);
  std::unique_ptr<CellSteps> steps = make_cell_steps(lists, cells);
  if (counts_only(resources)) {
    const BuildOutcome counted = run_cells(*steps, lists, cells, resources);
    steps.reset();
    return may_descend ? descend(lists, rounds, length, counted, by) : counted;
  }
  const ProbeForecast& forecast = steps->forecast();
  const auto first_part_says = [&](GraphMethod found) {  // each part measures blur by itself
    if (by.are_parts()) by.share->take_first(&found, 1);
    return found;
  };
  GraphMethod method = first_part_says(choice.before_cut(forecast, steps->blur()));
  if (method != GraphMethod::exact) {
    steps->learn();
    method = first_part_says(choice.before_cut(forecast, steps->blur()));
  }
  if (forecast.needed > 0) report.forecast = {forecast.needed, static_cast<int64_t>(choice.least_work(forecast).pairs)};
  if (method != GraphMethod::exact) {
    steps->cut();
    put_forecast(*steps, report);
    method = first_part_says(choice.after_cut(forecast, report.forecast->comparisons, steps->blur()));
  }
  const std::string by_cells = report.forecast ? fmt::format("{} probes would do by cells", report.forecast->probes)
                                               : std::string("cells could not be sooner");
  resources.log(LogLevel::info, fmt::format("graph of {} rows on {}: {} for a recall of {}; {}", x.rows(),
                                            name_of(resources.device()), name_of(method), params.recall, by_cells));
  report.method = name_of(method);
  if (method == GraphMethod::exact) return std::nullopt;
  if (method == GraphMethod::cells) return begin_by_cells(*steps, lists, cells, report, resources);
  cells.probes = choice.begins();
  const BuildOutcome begun = begin_by_cells(*steps, lists, cells, report, resources);
  steps.reset();  // rounds take memory of their own
  put_descent(rounds, GraphStart::cells, length, params, report);
  return begun.reached ? begun : descend(lists, rounds, length, begun, by);
}

// Parts fill one graph.
RankPart rows_to_write(int64_t rows, const GraphRanks& by) {
  return by.are_parts() ? by.share->rows() : RankPart{0, rows};
}

// A report of what build(lists, report) does, by cells or by NN-Descent, and its graph, unless it leaves that to exact
// search. The resources name the device, which is not automatic. Rows and results are in host memory or, each for
// itself, in that of the device.
template <typename Build>
GraphReport approximate_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                              const GraphRanks& by, const Build& build) {
  GraphReport report;
  report.method = name_of(params.method);
  report.parameters.push_back({"recall", params.recall});
  report.parameters.push_back({"seed", static_cast<int64_t>(params.seed)});
  const GraphRowsParams rows{params.metric, params.k, params.seed, params.check_finite, by.share};
  with_graph_lists(x, rows, by.resources, [&](GraphLists& lists) {
    const std::optional<BuildOutcome> outcome = build(lists, report);
    report.reached = false;
    if (!outcome) return;
    lists.write(out, rows_to_write(lists.rows(), by));
    put_outcome(*outcome, lists.control_rows(), report);
  });
  return report;
}

GraphReport cells_report(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                         const GraphRanks& by) {
  return approximate_graph(x, out, params, by, [&](GraphLists& lists, GraphReport& report) {
    return build_cells(lists, x, params, report, by);
  });
}

GraphReport descent_report(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                           const GraphRanks& by) {
  check_descent(descent_params(params, length_of(params)).rules, length_of(params), by.resources.device());
  return approximate_graph(x, out, params, by, [&](GraphLists& lists, GraphReport& report) {
    return build_descent(lists, x, params, report, by);
  });
}

// Whether all others of a row fit its list: then they are all compared.
bool all_fit(const MatrixView& x, const KnnGraphParams& params) {
  const bool descends = params.method == GraphMethod::nn_descent || params.method == GraphMethod::ggm;
  const int64_t length = descends ? params.list_length.value_or(default_list_length(params.k)) : params.k;
  return x.rows() - 1 <= length;
}

struct GraphChoice {
  KnnGraphParams params;  // the method that is used, with parameters of its own where it was left to us
  Device device;

  bool is_exact(const MatrixView& x) const { return params.method == GraphMethod::exact || all_fit(x, params); }
};

GraphChoice choose_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                         const GraphProblem& problem, const Resources& resources) {
  GraphChoice choice{params, resources.device()};
  if (params.method == GraphMethod::exact || params.recall == 1) {
    choice.params.method = GraphMethod::exact;
    return choice;
  }
  choice.device = device_of(x, out, problem, params.method, resources);
  if (params.method != GraphMethod::automatic) return choice;
  choice.params.method = first_method(problem, problem.most.judge(choice.device.kind));
  if (choice.params.method == GraphMethod::nn_descent) {
    resources.log(LogLevel::info, fmt::format("graph of {} rows on {}: nn_descent for a recall of {}", x.rows(),
                                              name_of(choice.device), params.recall));
  }
  return choice;
}

// Whether parts divide the work on these rows and results, which are on the host or on the GPU that the parts are of.
bool is_divided(const MatrixView& x, const NeighborsView& out, const Resources& resources) {
  return is_divided(x.space(), resources) && is_divided(out.space, resources);
}

// Every part has all rows and lists, and compares its share of the rows with all of them. Where one has no room for
// that, and where CPUs work beside GPUs, the first does all. Returns what each part needs.
std::optional<Footprint> fit_on_parts(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                                      const GraphBounds& most, const Resources& resources) {
  const bool on_gpus = resources.device().kind == DeviceKind::cuda;
  if (!are_of_one_kind(resources) || (on_gpus && params.k > kLongestDeviceList)) return std::nullopt;
  const int parts = resources.parts();
  Footprint exchanged;
  if (on_gpus) {
    exchanged.device = std::max(GraphShare::device_bytes_to_join(x.rows(), params.k, parts),
                                GraphShare::device_bytes_to_gather(x.rows(), kInboxSlots, parts));
  }
  const auto needs = [&](const Resources& part) {
    const auto build = [&](const Resources& counting) { (void)build_graph(x, out, params, counting, most); };
    return footprint_of_call(part, build).beside(exchanged);
  };
  return needed_if_all_have_room(fmt::format("graph of {} rows", x.rows()), resources, needs);
}

GraphReport graph_on_parts(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                           const GraphBounds& most, const Footprint& needed, const Resources& resources) {
  wait_for_caller(resources, x.space(), out.space);
  GraphReport report;
  const MutualReads reads(resources.parts());
  run_parts(resources, [&](Communicator& ranks, const Resources& part) {
    const GraphShare share(ranks, x.rows(), &reads);
    const Resources used = admitted("the graph", needed, ranks.rank() == 0 ? part : part.with_log({}));
    GraphReport own = build_graph(x, out, params, used, most, &share);
    if (!out.space.host_readable()) wait_for_stream(out.space.device, part);
    if (ranks.rank() == 0) report = std::move(own);
  });
  return report;
}

GraphReport exact_report(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                         const GraphRanks& by) {
  by.share == nullptr ? exact_graph(x, out, params, by.resources)
                      : exact_graph(x, out, params, *by.share, by.resources);
  GraphReport report;
  report.method = name_of(GraphMethod::exact);
  report.recall = exact_recall(x.rows());
  return report;
}

// A method that was chosen for the caller. Where it misses the recall, exact search follows, unless that is refused.
GraphReport chosen_report(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& chosen,
                          const GraphProblem& problem, const GraphRanks& by) {
  const Resources& resources = by.resources;
  GraphReport report = chosen.method == GraphMethod::nn_descent
                           ? descent_report(x, out, chosen, by)
                           : approximate_graph(x, out, chosen, by, [&](GraphLists& lists, GraphReport& told) {
                               return build_soonest(lists, x, chosen, problem, told, by);
                             });
  if (report.reached) return report;
  if (is_refused(problem, problem.pairs(), problem.most.judge(resources.device().kind))) {
    warn_if_missed(report, chosen.recall, "these rows are too many to compare all pairs unasked; use exact", resources);
    return report;
  }
  if (report.recall) {
    resources.log(LogLevel::info, fmt::format("{} reached a recall of {:.4f} of these rows, not {}; exact goes on",
                                              report.method, report.recall->recall, chosen.recall));
  }
  GraphReport exact = exact_report(x, out, chosen, by);
  exact.forecast = report.forecast;
  exact.rounds = std::move(report.rounds);
  return exact;
}

}  // namespace

SoonestMethod::SoonestMethod(const GraphProblem& problem, const KnnGraphParams& params, DeviceKind builds)
    : problem_(problem),
      device_(problem.most.judge(builds)),
      blurs_(device_ == builds),
      params_(cells_params(problem.rows, params)),
      begins_(start_probes(problem, params_.cells)) {
  const GraphCosts costs = predict_graph_costs(problem, likely_work(problem), device_);
  may_descend_ = exact_is_refused() ? std::isfinite(costs.nn_descent) : costs.nn_descent < costs.exact;
  params_.probes = std::max(affordable_probes(problem, params_.cells, device_), may_descend_ ? begins_ : 1);
  params_.keeps_order = may_descend_;
}

bool SoonestMethod::exact_is_refused() const { return is_refused(problem_, problem_.pairs(), device_); }

CellsWork SoonestMethod::least_work(const ProbeForecast& forecast) const {
  return balanced_work(problem_, static_cast<double>(std::max<int64_t>(forecast.needed, 1)));
}

GraphMethod SoonestMethod::before_cut(const ProbeForecast& forecast, double blur) const {
  CellsWork work = least_work(forecast);
  work.blur = blurs_ ? blur : 0;
  return soonest(forecast, work);
}

GraphMethod SoonestMethod::after_cut(const ProbeForecast& forecast, int64_t pairs, double blur) const {
  return soonest(forecast, {static_cast<double>(forecast.needed), static_cast<double>(pairs), 0, blurs_ ? blur : 0});
}

GraphMethod SoonestMethod::soonest(const ProbeForecast& forecast, CellsWork work) const {
  work.ties = static_cast<double>(problem_.rows) * (forecast.mean_near - static_cast<double>(problem_.k));
  if (forecast.crowded) work.blur = 1;
  const bool descends =
      may_descend_ && forecast.for_descent <= start_probes(problem_, default_cells(problem_.rows, problem_.k));
  const bool enough = forecast.needed <= ranked_probes(params_);
  GraphMethod method = enough ? choose_graph_method(problem_, work, descends, device_) : GraphMethod::exact;
  // Where all else is refused, rounds make the best of it, or cells where there can be none.
  if (method == GraphMethod::exact && exact_is_refused()) method = GraphMethod::nn_descent;
  return method == GraphMethod::nn_descent && !may_descend_ ? GraphMethod::cells : method;
}

Device graph_device(const RowsInfo& x, const KnnGraphParams& params, const Resources& resources) {
  const MatrixView rows = x.counted_view();
  return device_of(rows, {nullptr, nullptr, x.rows, params.k, {}}, problem_of(rows, params), params.method, resources);
}

CellsParams cells_params(int64_t rows, const KnnGraphParams& params) {
  CellsParams cells;
  cells.metric = params.metric;
  cells.k = params.k;
  cells.cells = std::min(params.cells.value_or(default_cells(rows, params.k)), rows);
  cells.probes = std::min(params.probes.value_or(cells.cells), cells.cells);
  cells.recall = params.recall;
  cells.seed = params.seed;
  return cells;
}

Counts graph_counts(const std::vector<MatrixView>& rows, double products) {
  Counts counts{{CostUnit::grouped_product, 2 * products}};
  for (const MatrixView& x : rows) {
    if (!x.space().host_readable()) continue;
    counts.add(CostUnit::copied_byte, static_cast<double>(x.rows() * x.cols() * size_of(x.dtype())));
  }
  return counts;
}

GraphReport build_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                        const Resources& resources, const GraphBounds& most, const GraphShare* share) {
  const int64_t rows_at_once = share == nullptr ? 0 : share->room_rows();
  if (counts_only(resources)) share = nullptr;
  GraphProblem problem = problem_of(x, params);
  problem.most = most;
  const GraphChoice choice = choose_graph(x, out, params, problem, resources);
  const KnnGraphParams& chosen = choice.params;
  if (choice.is_exact(x)) return exact_report(x, out, chosen, {resources, share});
  check_graph_size(x.rows(), params.k);
  check_knn(RowsInfo(x), RowsInfo(x), {params.k, params.metric});
  check_output(out, x.rows(), params.k);
  const bool by_lists = chosen.method == GraphMethod::cells || chosen.method == GraphMethod::nn_descent;
  if (share == nullptr && by_lists && is_divided(x, out, resources)) {
    const std::optional<Footprint> needed = fit_on_parts(x, out, params, most, resources);
    if (needed) return graph_on_parts(x, out, params, most, *needed, resources);
  }
  const Resources on_device = resources.with_device(choice.device);
  const GraphRanks there{on_device, share, rows_at_once};
  if (params.method == GraphMethod::automatic) return chosen_report(x, out, chosen, problem, there);
  if (params.method == GraphMethod::ggm) {
    return ggm_graph(x, out, chosen, share == nullptr && is_divided(x, out, resources) ? resources : on_device);
  }
  const bool by_cells = params.method == GraphMethod::cells;
  const GraphReport report = by_cells ? cells_report(x, out, chosen, there) : descent_report(x, out, chosen, there);
  warn_if_missed(report, params.recall,
                 by_cells ? "allow more probes, or use nn_descent or exact"
                          : "allow longer lists, more samples or iterations, or use exact",
                 resources);
  return report;
}

KnnGraph knn_graph(const MatrixView& x, const KnnGraphParams& params, const Resources& resources) {
  return knn_graph_of(x, params, nullptr, resources);
}

KnnGraph knn_graph_of(const MatrixView& x, const KnnGraphParams& params, const GraphShare* share,
                      const Resources& resources) {
  params.validate();
  check_graph_size(x.rows(), params.k);
  check_search(RowsInfo(x), RowsInfo(x), params.metric);
  if (is_narrowed(x)) {
    return with_narrowed(
        "the graph", "x", x, params.metric, resources,
        [&](const MatrixView& rows, const Resources& used) { return knn_graph_of(rows, params, share, used); });
  }
  const GraphOutputShape shape{x.rows(), params.k, x.space().host_readable() ? MemorySpace::host() : x.space()};
  return within_limits("the graph", resources, [&](const Resources& used) {
    const auto build = [&](const NeighborsView& out, const Resources& counted) {
      return naming_rows("x", [&] { return build_graph(x, out, params, counted, {}, share); });
    };
    return make_graph(shape, params.metric, used, build, GivenGpus::all);
  });
}

GraphReport knn_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                      const Resources& resources) {
  return knn_graph_of(x, out, params, nullptr, resources);
}

GraphReport knn_graph_of(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                         const GraphShare* share, const Resources& resources) {
  params.validate();
  if (is_narrowed(x)) {
    return with_narrowed(
        "the graph", "x", x, params.metric, resources,
        [&](const MatrixView& rows, const Resources& used) { return knn_graph_of(rows, out, params, share, used); });
  }
  return within_limits("the graph", resources, [&](const Resources& used) {
    const auto build = [&](const Resources& counted) {
      return naming_rows("x", [&] { return build_graph(x, out, params, counted, {}, share); });
    };
    return measured(used, build, GivenGpus::all);
  });
}

}  // namespace kith
