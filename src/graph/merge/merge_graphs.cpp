// Two graphs, many, a graph and new rows, or a graph alone: lists, rounds, a report.
#include <kith/graph_merge.hpp>

#include <kith/error.hpp>
#include <kith/matrix_buffer.hpp>

#include "core/peak_memory.hpp"
#include "exact/knn_checks.hpp"
#include "graph/approximate_graph.hpp"
#include "graph/write_lists.hpp"
#include "graph/graph_access.hpp"
#include "graph/graph_check.hpp"
#include "graph/merge/merge_pair.hpp"
#include "graph/merge/part_checks.hpp"
#include "graph/method_choice.hpp"
#include "graph/nn_descent/start_lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace kith {
namespace {

// Up to so many rows of one set are compared with all of the other: rounds would take longer.
constexpr int64_t kFewRows = 4096;

DescentWish wish_of(const GraphMergeParams& params, Metric metric, int64_t k, int64_t list_length) {
  DescentWish wish;
  wish.metric = metric;
  wish.k = k;
  wish.rules.samples = params.samples.value_or(default_samples(list_length));
  wish.rules.inbox_slots = kInboxSlots;
  wish.rules.seed = params.seed;
  wish.iterations = params.iterations.value_or(kDefaultIterations);
  wish.delta = params.delta.value_or(kDefaultDelta);
  wish.recall = params.recall;
  return wish;
}

int64_t length_of(const GraphMergeParams& params, int64_t k) {
  if (params.list_length && *params.list_length < k) {
    throw InvalidArgument(
        fmt::format("list_length = {}; a working list holds at least the k = {} neighbours", *params.list_length, k));
  }
  return params.list_length.value_or(default_list_length(k));
}

// Both sets of rows, one after the other; as they lie where the second follows the first.
class JoinedRows {
 public:
  JoinedRows(const MatrixView& a, const MatrixView& b, const Resources& resources) {
    if (b.rows() == 0 || (a.rows() > 0 && a.row(a.rows()) == b.row(0) && a.row_stride() == b.row_stride())) {
      view_ = MatrixView(a.data(), a.dtype(), {a.rows() + b.rows(), a.cols(), a.row_stride()});
      return;
    }
    memory_ = MatrixBuffer(a.dtype(), a.rows() + b.rows(), a.cols(), "the rows of both sets", resources);
    const MutableMatrixView out = memory_.mutable_view();
    const auto bytes = static_cast<size_t>(a.cols() * size_of(a.dtype()));
    for (int64_t i = 0; i < a.rows(); ++i) std::memcpy(out.row(i), a.row(i), bytes);
    for (int64_t i = 0; i < b.rows(); ++i) std::memcpy(out.row(a.rows() + i), b.row(i), bytes);
    view_ = memory_.view();
  }
  const MatrixView& view() const { return view_; }

 private:
  MatrixBuffer memory_;
  MatrixView view_;
};

// A build with its clock and its peak, from lists to a graph.
class GraphWork {
 public:
  GraphWork(std::string method, const Resources& resources) : memory_(resources), on_cpu_(memory_.resources().with_device(Device::cpu())) {
    if (resources.device().kind == DeviceKind::cuda) {
      throw Unsupported(fmt::format("graphs are {} on the CPU; use device cpu or auto",
                                    method == "merge" ? "merged" : method == "extend" ? "extended" : "refined"));
    }
    report_.method = std::move(method);
  }
  const Resources& resources() const { return on_cpu_; }
  GraphReport& report() { return report_; }

  void say_exact(int64_t rows) {
    report_.recall = GraphRecall{.recall = 1, .recall_at_10 = 1, .standard_error = 0, .rows = rows};
  }
  KnnGraph finish(const WorkingLists& lists, Metric metric, int64_t k) {
    Neighbors neighbors(lists.rows(), k, on_cpu_);
    write_lists(lists, metric, neighbors.view(), on_cpu_);
    return finish(std::move(neighbors), metric);
  }
  KnnGraph finish(Neighbors neighbors, Metric metric) {
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    report_.peak_host_bytes = memory_.host_bytes();
    return GraphAccess::make(std::move(neighbors), metric, std::move(report_));
  }
  // Every pair compared, where all others fit a list.
  KnnGraph exact(const MatrixView& x, Metric metric, int64_t k, bool check_finite) {
    Neighbors neighbors(x.rows(), k, on_cpu_);
    knn_graph(x, neighbors.view(),
              {.k = k, .metric = metric, .method = GraphMethod::exact, .check_finite = check_finite}, on_cpu_);
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
  Resources on_cpu_;
  GraphReport report_;
};

KnnGraph merged(GraphWork& work, const GraphPart& a, const GraphPart& b, const GraphMergeParams& params,
                bool few_exactly) {
  const Resources& resources = work.resources();
  const Metric metric = a.graph.metric();
  const int64_t k = a.graph.k();
  const int64_t length = length_of(params, k);
  const JoinedRows both(a.x, b.x, resources);
  const MatrixView& x = both.view();
  check_graph_rows(x, metric, params.check_finite, resources);
  if (x.rows() - 1 <= length) return work.exact(x, metric, k, params.check_finite);
  const PairRows rows(x, key_kind(metric), resources);
  const ControlRows control(x, metric, k, params.seed, resources);
  const bool exactly = few_exactly && std::min(a.x.rows(), b.x.rows()) <= kFewRows;
  WorkingLists lists(x.rows(), exactly ? k : length, resources);
  const MergeInput input{a.graph, b.graph, a.x.rows()};
  BuildOutcome outcome;
  if (exactly) {
    merge_exactly(rows, input, lists, resources);
    outcome.recall = control.measure(lists);
    outcome.reached = outcome.recall->recall >= params.recall;
  } else {
    const DescentWish wish = wish_of(params, metric, k, length);
    work.put_parameters(wish, length);
    outcome = merge_pair(rows, input, wish, &control, lists, resources);
  }
  put_outcome(outcome, static_cast<int64_t>(control.rows().size()), work.report());
  warn_if_missed(work.report(), params.recall, "refine it, or allow longer lists, more samples or iterations", resources);
  return work.finish(lists, metric, k);
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

}  // namespace

void GraphMergeParams::validate() const {
  KnnGraphParams{.method = GraphMethod::nn_descent,
                 .recall = recall,
                 .samples = samples,
                 .list_length = list_length ? std::optional(std::max<int64_t>(*list_length, 15)) : std::nullopt,
                 .iterations = iterations,
                 .delta = delta}
      .validate();
  if (list_length && *list_length < 1) throw InvalidArgument(fmt::format("list_length = {}; at least k", *list_length));
}

KnnGraph merge_graphs(const KnnGraph& graph1, const MatrixView& x1, const KnnGraph& graph2, const MatrixView& x2,
                      const GraphMergeParams& params, const Resources& resources) {
  return merge_graphs({{graph1, x1}, {graph2, x2}}, params, resources);
}

KnnGraph merge_graphs(const std::vector<GraphPart>& parts, const GraphMergeParams& params,
                      const Resources& resources) {
  params.validate();
  if (parts.empty()) throw InvalidArgument("no graphs to merge; give at least one");
  GraphWork work("merge", resources);
  std::vector<GraphPart> here;
  int64_t rows = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    here.push_back({parts[i].graph.to(MemorySpace::host(), work.resources()), parts[i].x});
    check_part(here[i], fmt::format("graph {}", i + 1), work.resources());
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
  double least = 1;
  for (size_t i = 0; i < here.size(); ++i) {
    if (here.size() == 1) {  // with others, the merged pairs bring a part's own neighbours
      const int64_t alone[2] = {0, 0};
      offer_merged(here[i].graph, alone, here[i].x.rows(), lists);
    }
    for (size_t j = i + 1; j < here.size(); ++j) {
      GraphWork pair("merge", work.resources());
      const KnnGraph both = merged(pair, here[i], here[j], params, false);
      const int64_t begin[2] = {begins[i], begins[j]};
      offer_merged(both, begin, here[i].x.rows(), lists);
      const GraphReport& told = both.report();
      if (told.recall) least = std::min(least, told.recall->recall);
      work.report().reached = work.report().reached && told.reached;
      work.report().rounds.insert(work.report().rounds.end(), told.rounds.begin(), told.rounds.end());
    }
  }
  work.report().parameters = {{"recall", params.recall},
                              {"parts", static_cast<int64_t>(parts.size())},
                              {"least_recall_of_a_pair", least}};
  return work.finish(lists, metric, k);
}

KnnGraph extend_graph(const KnnGraph& graph, const MatrixView& x, const MatrixView& fresh,
                      const GraphMergeParams& params, const Resources& resources) {
  params.validate();
  GraphWork work("extend", resources);
  const GraphPart old{graph.to(MemorySpace::host(), work.resources()), x};
  check_part(old, "the graph", work.resources());
  if (!fresh.space().host_readable()) {
    throw Unsupported("the new rows lie in a GPU's memory; graphs are extended on the CPU: copy them");
  }
  check_same(old, {old.graph, fresh});
  check_graph_rows(fresh, graph.metric(), params.check_finite, work.resources());
  const KnnGraphParams of_fresh{.k = graph.k(),
                                .metric = graph.metric(),
                                .check_finite = params.check_finite,
                                .recall = params.recall,
                                .seed = params.seed};
  const GraphPart added{knn_graph(fresh, of_fresh, work.resources()), fresh};
  return merged(work, old, added, params, true);
}

KnnGraph refine_graph(const KnnGraph& graph, const MatrixView& x, const GraphMergeParams& params,
                      const Resources& resources) {
  params.validate();
  GraphWork work("refine", resources);
  const GraphPart part{graph.to(MemorySpace::host(), work.resources()), x};
  check_part(part, "the graph", work.resources());
  check_graph_rows(x, graph.metric(), params.check_finite, work.resources());
  const int64_t length = length_of(params, graph.k());
  if (x.rows() - 1 <= length) return work.exact(x, graph.metric(), graph.k(), params.check_finite);
  const PairRows rows(x, key_kind(graph.metric()), work.resources());
  const ControlRows control(x, graph.metric(), graph.k(), params.seed, work.resources());
  WorkingLists lists(x.rows(), length, work.resources());
  add_graph(rows, part.graph, 0, graph.k(), lists, work.resources());
  add_random_rows(rows, 0, params.seed, lists, work.resources());
  const DescentWish wish = wish_of(params, graph.metric(), graph.k(), length);
  work.put_parameters(wish, length);
  const BuildOutcome outcome = run_descent(rows, wish, &control, lists, work.resources());
  put_outcome(outcome, static_cast<int64_t>(control.rows().size()), work.report());
  warn_if_missed(work.report(), params.recall, "allow longer lists, more samples or iterations, or use exact",
                 work.resources());
  return work.finish(lists, graph.metric(), graph.k());
}

}  // namespace kith
