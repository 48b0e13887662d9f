// The graph by a metric of the user's, by NN-Descent from random rows, on the CPU.
#include <kith/custom_metric.hpp>
#include <kith/error.hpp>

#include "core/within_limits.hpp"
#include "graph/build/custom/custom_descent_params.hpp"
#include "graph/build/exact/without_self.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/lists/graph_lists_cpu.hpp"
#include "graph/lists/pairs/pair_keys.hpp"
#include "graph/lists/pairs/symmetric_pairs.hpp"
#include "rows/finite_check.hpp"
#include "rows/knn_checks.hpp"

namespace kith {

void CustomGraphParams::validate() const {
  KnnGraphParams{.k = k,
                 .method = GraphMethod::nn_descent,
                 .recall = recall,
                 .seed = seed,
                 .samples = samples,
                 .list_length = list_length,
                 .iterations = iterations,
                 .delta = delta}
      .validate();
}

namespace custom {
namespace {

// That the metric is what it says it is.
void check_symmetric(const PairRows& rows, uint64_t seed) {
  const SymmetricPairs pairs(rows.view().rows(), seed);
  PairKeys keys(rows);
  for (int64_t i = 0; i < SymmetricPairs::kCount; ++i) {
    const auto [a, b] = pairs.pair(i);
    float there = 0;
    float back = 0;
    keys.of(a, &b, 1, &there);
    keys.of(b, &a, 1, &back);
    pairs.check(i, there, back);
  }
}

// The neighbours of some rows among all others, one more than k where a row may find itself.
Neighbors search(const PanelMetric& metric, const MatrixView& queries, const MatrixView& x, int64_t k,
                 const Resources& resources) {
  return knn(metric, queries, x, {.k = k + 1, .check_finite = false}, resources.with_progress({}));
}

ControlRows control_of(const PanelMetric& metric, const MatrixView& x, int64_t k, uint64_t seed,
                       const Resources& resources) {
  return ControlRows(x, kLikeCustom, k, seed, resources,
                     [&](const MatrixView& queries, int64_t most, const Resources& used) {
                       return search(metric, queries, x, most - 1, used);
                     });
}

}  // namespace

CustomGraph knn_graph(const PanelMetric& metric, const MatrixView& x, const CustomGraphParams& params,
                      const Resources& given) {
  check_custom_graph(x, params);
  check_host_readable("x", x);
  if (given.device().kind == DeviceKind::cuda) {
    throw Unsupported(
        "knn_graph_by runs on the CPU; use device cpu or auto, or knn_graph_by_cuda of custom_metric.cuh");
  }
  const Resources on_cpu = given.with_device(Device::cpu());
  const auto fill = [&](const NeighborsView& out, GraphReport& report, const Resources& resources) {
    if (params.check_finite) refuse_not_finite("x", x, {}, resources.with_progress({}));
    const int64_t length = custom_list_length(params);
    const PairRows rows(x, metric);
    if (x.rows() > 0) check_symmetric(rows, params.seed);
    if (x.rows() - 1 <= length) {
      report.recall = exact_recall(x.rows());
      return call_or_count(
          resources, [&](const Resources& used) { put_without_self(search(metric, x, x, params.k, used), 0, out); });
    }
    const DescentParams rounds = custom_descent_params(params, report);
    const ControlRows control = control_of(metric, x, params.k, params.seed, resources);
    WorkingLists working(x.rows(), length, resources);
    GraphListsCpu lists(rows, kLikeCustom, &control, working, resources);
    lists.add_random_rows(params.seed, 0);
    put_outcome(run_descent(lists, rounds, resources), lists.control_rows(), report);
    warn_if_missed(report, params.recall, kCustomAdvice, resources);
    lists.write_all(out);
  };
  return within_limits("the graph", on_cpu,
                       [&](const Resources& used) { return measured_custom(x, params, used, fill); });
}

}  // namespace custom
}  // namespace kith
