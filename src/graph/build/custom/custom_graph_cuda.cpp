// The graph by a metric of the user's, by NN-Descent from random rows, on a GPU.
#include <kith/custom_metric_cuda.hpp>

#include "exact/custom_device.hpp"
#include "graph/build/custom/custom_descent_params.hpp"
#include "graph/build/exact/without_self.hpp"
#include "graph/build/nn_descent/descent_workspace.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/lists/graph_lists.hpp"
#include "rows/finite_check.hpp"

namespace kith::custom {

namespace {

void build(const GraphMetric& metric, const MatrixView& x, const CustomGraphParams& params, const DescentParams& rounds,
           const NeighborsView& out, GraphReport& report, const Resources& resources) {
  const int64_t length = custom_list_length(params);
  const bool exact = x.rows() - 1 <= length;
  if (x.rows() > 0) {
    const GraphRowsParams rows{kLikeCustom, params.k, params.seed, params.check_finite};
    const auto lists = make_graph_lists_cuda(resources.device().index, x, rows, &metric, resources);
    if (!exact) {
      lists->begin(length);
      lists->add_random_rows(params.seed, 0);
      put_outcome(run_descent(*lists, rounds, resources), lists->control_rows(), report);
      lists->write_all(out);
      warn_if_missed(report, params.recall, kCustomAdvice, resources);
    }
  }
  if (exact) {
    const CustomKnnParams all{.k = params.k + 1, .check_finite = false};
    put_without_self(knn_cuda(metric.search, x, x, all, resources.with_progress({})), 0, out);
    report.recall = exact_recall(x.rows());
  }
}

}  // namespace

CustomGraph knn_graph_cuda(const GraphMetric& metric, const MatrixView& x, const CustomGraphParams& params,
                           const Resources& given) {
  check_custom_graph(x, params);
  const Device device = custom_device({x.space()}, given, "knn_graph_by_cuda", "knn_graph_by");
  const Resources resources = given.with_device(device);
  const bool exact = x.rows() - 1 <= custom_list_length(params);
  GraphReport parameters;
  const DescentParams rounds = exact ? DescentParams{} : custom_descent_params(params, parameters);
  if (!exact) check_descent(rounds.rules, custom_list_length(params), device);
  return within_limits("the graph", resources, [&](const Resources& used) {
    return measured_custom(x, params, used,
                           [&](const NeighborsView& out, GraphReport& report, const Resources& counted) {
                             report.parameters = parameters.parameters;
                             naming_rows("x", [&] { build(metric, x, params, rounds, out, report, counted); });
                           });
  });
}

}  // namespace kith::custom
