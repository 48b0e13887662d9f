// Two graphs, many, a graph and new rows, or a graph alone: lists, rounds, a report.
#include <kith/graph_merge.hpp>

#include <kith/error.hpp>

#include "core/peak_memory.hpp"
#include "cuda/resolve_device.hpp"
#include "exact/knn_checks.hpp"
#include "graph/approximate_graph.hpp"
#include "graph/graph_access.hpp"
#include "graph/graph_check.hpp"
#include "graph/merge/joined_rows.hpp"
#include "graph/merge/merge_limit.hpp"
#include "graph/merge/merge_pair.hpp"
#include "graph/merge/part_checks.hpp"
#include "graph/method_choice.hpp"
#include "graph/nn_descent/descent_wish.hpp"
#include "graph/nn_descent/descent_workspace.hpp"
#include "graph/with_graph_backend.hpp"
#include "graph/write_lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kith {
namespace {

// Up to so many rows of one set are compared with all of the other: rounds would take longer.
constexpr int64_t kFewRows = 4096;

int64_t length_of(const GraphMergeParams& params, int64_t k) {
  if (params.list_length && *params.list_length < k) {
    throw InvalidArgument(
        fmt::format("list_length = {}; a working list holds at least the k = {} neighbours", *params.list_length, k));
  }
  return params.list_length.value_or(default_list_length(k));
}

// Where the work is done: where rows lie, or on a GPU where that is predicted to take less time. The graph is the same.
Device device_of(const std::vector<GraphPart>& parts, const std::string& method, const Resources& resources) {
  GraphProblem problem{0, parts[0].x.cols(), parts[0].graph.k(), parts[0].graph.metric(), 0.99};
  constexpr double kGpuFlops = 1e14;
  DeviceRequest request;
  for (const GraphPart& part : parts) {
    problem.rows += part.x.rows();
    request.spaces.push_back(part.x.space());
    if (part.x.space().host_readable()) {
      request.work.bytes += static_cast<double>(part.x.rows() * part.x.cols() * size_of(part.x.dtype()));
    }
  }
  request.job = "to " + method + " graphs";
  request.work.flops = 2 * predict_graph_costs(problem, DeviceKind::cpu).nn_descent;
  request.work.gpu_flops = kGpuFlops;
  request.fits = [](Device) { return true; };
  request.description = [&] { return fmt::format("{} graphs of {} rows", method, problem.rows); };
  return resolve_device(request, resources);
}

// A build with its clock and its peak, from lists to a graph.
class GraphWork {
 public:
  GraphWork(std::string method, const std::vector<GraphPart>& parts, const Resources& resources)
      : memory_(resources), there_(memory_.resources().with_device(device_of(parts, method, resources))) {
    report_.method = std::move(method);
  }
  const Resources& resources() const { return there_; }
  GraphReport& report() { return report_; }

  void say_exact(int64_t rows) {
    report_.recall = GraphRecall{.recall = 1, .recall_at_10 = 1, .standard_error = 0, .rows = rows};
  }
  KnnGraph finish(Neighbors neighbors, Metric metric) {
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    report_.peak_host_bytes = memory_.host_bytes();
    report_.peak_device_bytes = memory_.device_bytes();
    return GraphAccess::make(std::move(neighbors), metric, std::move(report_));
  }
  // Every pair compared, where all others fit a list.
  KnnGraph exact(const MatrixView& x, Metric metric, int64_t k, bool check_finite) {
    Neighbors neighbors(x.rows(), k, there_);
    knn_graph(x, neighbors.view(),
              {.k = k, .metric = metric, .method = GraphMethod::exact, .check_finite = check_finite}, there_);
    say_exact(x.rows());
    return finish(std::move(neighbors), metric);
  }
  void put_parameters(const DescentWish& wish, int64_t list_length) {
    report_.parameters = {{"recall", *wish.recall},
                          {"seed", static_cast<int64_t>(wish.rules.seed)},
                          {"samples", wish.rules.samples},
                          {"list_length", list_length},
                          {"iterations", wish.iterations},
                          {"delta", wish.delta}};
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  PeakMemory memory_;
  Resources there_;
  GraphReport report_;
};

KnnGraph merged(GraphWork& work, const GraphPart& a, const GraphPart& b, const GraphMergeParams& params,
                bool few_exactly) {
  const Resources& resources = work.resources();
  const Metric metric = a.graph.metric();
  const int64_t k = a.graph.k();
  const int64_t length = length_of(params, k);
  const JoinedRows both(a.x, b.x, resources.device(), resources);
  const MatrixView& x = both.view();
  if (x.rows() - 1 <= length) return work.exact(x, metric, k, params.check_finite);
  const bool exactly = few_exactly && std::min(a.x.rows(), b.x.rows()) <= kFewRows;
  if (!exactly) check_descent(descent_wish(params, metric, k, length).rules, length, resources.device());
  const MergeInput input{a.graph, b.graph, a.x.rows()};
  Neighbors neighbors(x.rows(), k, resources);
  with_graph_backend(x, {metric, k, params.seed, params.check_finite}, resources, [&](GraphBackend& backend) {
    BuildOutcome outcome;
    backend.begin_lists(exactly ? k : length);
    if (exactly) {
      merge_exactly(backend, input, resources);
      outcome.recall = backend.measure();
      outcome.reached = outcome.recall->recall >= params.recall;
    } else {
      const DescentWish wish = descent_wish(params, metric, k, length);
      work.put_parameters(wish, length);
      outcome = merge_pair(backend, input, wish, resources);
    }
    put_outcome(outcome, backend.control_rows(), work.report());
    backend.write(neighbors.view());
  });
  warn_if_missed(work.report(), params.recall, "refine it, or allow longer lists, more samples or iterations", resources);
  return work.finish(std::move(neighbors), metric);
}

// A graph's neighbours, of the two parts that it was merged of, offered to the lists of all parts.
void offer_merged(const KnnGraph& pair, const int64_t (&begin)[2], int64_t boundary, WorkingLists& lists) {
  const Metric metric = pair.metric();
  const auto place = [&](int64_t row) { return row < boundary ? begin[0] + row : begin[1] + row - boundary; };
  for (int64_t row = 0; row < pair.rows(); ++row) {
    for (int64_t j = 0; j < pair.k() && pair.ids(row)[j] >= 0; ++j) {
      const float distance = pair.distances(row)[j];
      const uint32_t key = ordered_key(larger_is_nearer(metric) ? -distance : distance);
      lists.offer_alone(place(row), pack_neighbor(key, static_cast<uint32_t>(place(pair.ids(row)[j]))));
    }
  }
}

// Many parts, pair by pair.
KnnGraph merge_all(const std::vector<GraphPart>& parts, const GraphMergeParams& params, const Resources& resources) {
  GraphWork work("merge", parts, resources);
  std::vector<GraphPart> here;
  int64_t rows = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    here.push_back({parts[i].graph.to(MemorySpace::host(), work.resources()), parts[i].x});
    check_part(here[i], fmt::format("graph {}", i + 1), PartDistances::of_rows, work.resources());
    check_same(here[0], here[i]);
    rows += parts[i].x.rows();
  }
  check_row_count(rows);
  if (here.size() == 2) return merged(work, here[0], here[1], params, false);

  const Metric metric = here[0].graph.metric();
  const int64_t k = here[0].graph.k();
  WorkingLists lists(rows, k, work.resources());
  std::vector<int64_t> begins{0};
  for (const GraphPart& part : here) begins.push_back(begins.back() + part.x.rows());
  std::optional<GraphRecall> least;  // of a pair
  for (size_t i = 0; i < here.size(); ++i) {
    if (here.size() == 1) {  // with others, the merged pairs bring a part's own neighbours
      const int64_t alone[2] = {0, 0};
      offer_merged(here[i].graph, alone, here[i].x.rows(), lists);
    }
    for (size_t j = i + 1; j < here.size(); ++j) {
      GraphWork pair("merge", {here[i], here[j]}, work.resources());
      const KnnGraph both = merged(pair, here[i], here[j], params, false);
      const int64_t begin[2] = {begins[i], begins[j]};
      offer_merged(both, begin, here[i].x.rows(), lists);
      const GraphReport& told = both.report();
      if (told.recall && (!least || told.recall->recall < least->recall)) least = told.recall;
      work.report().reached = work.report().reached && told.reached;
      work.report().rounds.insert(work.report().rounds.end(), told.rounds.begin(), told.rounds.end());
    }
  }
  work.report().parameters = {{"recall", params.recall},
                              {"parts", static_cast<int64_t>(parts.size())}};
  work.report().recall = least;
  Neighbors neighbors(rows, k, work.resources());
  write_lists(lists, metric, neighbors.view(), work.resources());
  return work.finish(std::move(neighbors), metric);
}

KnnGraph refined(const std::vector<GraphPart>& parts, const GraphMergeParams& params, const Resources& resources) {
  GraphWork work("refine", parts, resources);
  const GraphPart part{parts[0].graph.to(MemorySpace::host(), work.resources()), parts[0].x};
  const Metric metric = part.graph.metric();
  const int64_t k = part.graph.k();
  check_part(part, "the graph", PartDistances::any, work.resources());  // its distances are computed again
  const int64_t length = length_of(params, k);
  if (part.x.rows() - 1 <= length) return work.exact(part.x, metric, k, params.check_finite);
  const DescentWish wish = descent_wish(params, metric, k, length);
  check_descent(wish.rules, length, work.resources().device());
  work.put_parameters(wish, length);
  Neighbors neighbors(part.x.rows(), k, work.resources());
  with_graph_backend(part.x, {metric, k, params.seed, params.check_finite}, work.resources(), [&](GraphBackend& backend) {
    backend.begin_lists(length);
    backend.add_rows(named_by(part.graph, 0, k));
    backend.add_random_rows(params.seed, 0);
    put_outcome(run_descent(backend, wish, work.resources()), backend.control_rows(), work.report());
    backend.write(neighbors.view());
  });
  warn_if_missed(work.report(), params.recall, "allow longer lists, more samples or iterations, or use exact",
                 work.resources());
  return work.finish(std::move(neighbors), metric);
}

}  // namespace

void GraphMergeParams::validate() const {
  if (recall == 1) {
    throw InvalidArgument("recall = 1, which rounds cannot promise; ask for less, as 0.999, or build the graph of all rows "
                          "by the method exact");
  }
  KnnGraphParams{.method = GraphMethod::nn_descent,
                 .recall = recall,
                 .samples = samples,
                 .list_length = list_length ? std::optional(std::max<int64_t>(*list_length, 15)) : std::nullopt,
                 .iterations = iterations,
                 .delta = delta}
      .validate();
  if (list_length && *list_length < 1) {
    throw InvalidArgument(
        fmt::format("list_length = {}; a working list holds at least the k neighbours of the graphs", *list_length));
  }
}

KnnGraph merge_graphs(const KnnGraph& graph1, const MatrixView& x1, const KnnGraph& graph2, const MatrixView& x2,
                      const GraphMergeParams& params, const Resources& resources) {
  return merge_graphs({{graph1, x1}, {graph2, x2}}, params, resources);
}

KnnGraph merge_graphs(const std::vector<GraphPart>& parts, const GraphMergeParams& params,
                      const Resources& resources) {
  params.validate();
  if (parts.empty()) throw InvalidArgument("no graphs to merge; give at least one");
  return naming_merge_limit({parts, false, params}, resources, [&] { return merge_all(parts, params, resources); });
}

KnnGraph extend_graph(const KnnGraph& graph, const MatrixView& x, const MatrixView& fresh,
                      const GraphMergeParams& params, const Resources& resources) {
  params.validate();
  const std::vector<GraphPart> parts{{graph, x}, {graph, fresh}};
  return naming_merge_limit({parts, true, params}, resources, [&] {
    GraphWork work("extend", parts, resources);
    const GraphPart old{graph.to(MemorySpace::host(), work.resources()), x};
    check_part(old, "the graph", PartDistances::of_rows, work.resources());
    check_same(old, {old.graph, fresh});
    if (fresh.space().host_readable()) {
      check_graph_rows(fresh, graph.metric(), params.check_finite, work.resources());
    }
    // The same method on every device, so that the graph is the same too.
    const GraphProblem problem{fresh.rows(), fresh.cols(), graph.k(), graph.metric(), params.recall};
    const KnnGraphParams of_fresh{.k = graph.k(),
                                  .metric = graph.metric(),
                                  .method = choose_graph_method(problem, DeviceKind::cpu),
                                  .check_finite = params.check_finite,
                                  .recall = params.recall,
                                  .seed = params.seed};
    const GraphPart added{knn_graph(fresh, of_fresh, work.resources()), fresh};
    return merged(work, old, added, params, true);
  });
}

KnnGraph refine_graph(const KnnGraph& graph, const MatrixView& x, const GraphMergeParams& params,
                      const Resources& resources) {
  params.validate();
  const std::vector<GraphPart> parts{{graph, x}};
  return naming_merge_limit({parts, false, params}, resources, [&] { return refined(parts, params, resources); });
}

}  // namespace kith
