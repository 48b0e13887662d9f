// The graph by a metric of the user's, by NN-Descent from random rows, on a GPU.
#include <kith/custom_metric_cuda.hpp>

#include "core/named_limit.hpp"
#include "core/peak_memory.hpp"
#include "exact/custom_device.hpp"
#include "exact/search_limit.hpp"
#include "graph/approximate_graph.hpp"
#include "graph/control_rows.hpp"
#include "graph/custom_wish.hpp"
#include "graph/graph_backend_cuda.hpp"
#include "graph/nn_descent/descent_workspace.hpp"
#include "graph/nn_descent/nn_descent.hpp"
#include "graph/without_self.hpp"
#include "rows/finite_check.hpp"

#include <chrono>
#include <utility>

namespace kith::custom {

namespace {

// Limits that would do for the whole call, on the device and on the host.
int64_t enough_there(const MatrixView& x, const CustomGraphParams& params, const DescentRules& rules) {
  constexpr int64_t kSets = 2 * kSetBytes;  // of lists to begin with, or of joins, and one set more than fits
  return enough_for_descent(x, kLikeCustom, params.k, custom_list_length(params), rules) + kSets;
}
int64_t enough_here(const MatrixView& x, const CustomGraphParams& params) {
  constexpr int64_t kSmall = int64_t{32} << 20;  // pairs to be checked, surveys of lists, rows on their way to the device
  const int64_t row = x.cols() * size_of(x.dtype()) + 12 * (params.k + 1) + 8 * custom_list_length(params);
  const int64_t searched = x.rows() - 1 <= custom_list_length(params) ? neighbors_bytes(x.rows(), params.k + 1) : 0;
  return neighbors_bytes(x.rows(), params.k) + searched + kControlRows * row + x.rows() / 16 + kSmall;
}

CustomGraph build(const GraphMetric& metric, const MatrixView& x, const CustomGraphParams& params,
                  const DescentWish& wish, GraphReport report, const Resources& resources) {
  const int64_t length = custom_list_length(params);
  CustomGraph graph{Neighbors(x.rows(), params.k, resources), std::move(report)};
  const bool exact = x.rows() - 1 <= length;
  if (x.rows() > 0) {
    const GraphRowsWish rows{kLikeCustom, params.k, params.seed, params.check_finite};
    const auto backend = make_custom_graph_backend_cuda(resources.device().index, x, rows, metric, resources);
    if (!exact) {
      backend->begin_lists(length);
      backend->add_random_rows(params.seed, 0);
      put_outcome(run_descent(*backend, wish, resources), backend->control_rows(), graph.report);
      backend->write(graph.neighbors.view());
      warn_if_missed(graph.report, params.recall, kCustomAdvice, resources);
    }
  }
  if (exact) {
    const CustomKnnParams all{.k = params.k + 1, .check_finite = false};
    put_without_self(knn_cuda(metric.search, x, x, all, resources.with_progress({})), 0, graph.neighbors.view());
    graph.report.recall = exact_recall(x.rows());
  }
  return graph;
}

}  // namespace

CustomGraph knn_graph_cuda(const GraphMetric& metric, const MatrixView& x, const CustomGraphParams& params,
                           const Resources& given) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  check_custom_graph(x, params);
  const Device device = custom_device({x.space()}, given, "knn_graph_by_cuda", "knn_graph_by");
  const PeakMemory memory(given);
  const Resources resources = memory.resources().with_device(device);
  GraphReport report;
  report.method = name_of(GraphMethod::nn_descent);
  const bool exact = x.rows() - 1 <= custom_list_length(params);
  const DescentWish wish = exact ? DescentWish{} : custom_wish(params, report);
  if (!exact) check_descent(wish.rules, custom_list_length(params), device);
  const auto work = [&] {
    return naming_rows("x", [&] { return build(metric, x, params, wish, std::move(report), resources); });
  };
  CustomGraph graph = naming_device_limit([&] { return enough_there(x, params, wish.rules); }, resources, [&] {
    return naming_host_limit([&] { return enough_here(x, params); }, resources, work);
  });
  graph.report.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  graph.report.peak_host_bytes = memory.host_bytes();
  graph.report.peak_device_bytes = memory.device_bytes();
  return graph;
}

}  // namespace kith::custom
