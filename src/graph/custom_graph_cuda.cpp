// The graph by a metric of the user's, by NN-Descent from random rows, on a GPU.
#include <kith/custom_metric_cuda.hpp>

#include "core/peak_memory.hpp"
#include "exact/custom_device.hpp"
#include "exact/knn_checks.hpp"
#include "graph/approximate_graph.hpp"
#include "graph/custom_wish.hpp"
#include "graph/exact_graph.hpp"
#include "graph/graph_backend_cuda.hpp"
#include "graph/nn_descent/descent_workspace.hpp"
#include "graph/nn_descent/nn_descent.hpp"
#include "graph/without_self.hpp"

#include <chrono>

namespace kith::custom {

CustomGraph knn_graph_cuda(const GraphMetric& metric, const MatrixView& x, const CustomGraphParams& params,
                           const Resources& given) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  params.validate();
  check_graph_size(x.rows(), params.k);
  check_knn(RowsInfo(x), RowsInfo(x), {params.k, kLikeCustom});
  const Device device = custom_device({x.space()}, given, "knn_graph_by_cuda", "knn_graph_by");
  const PeakMemory memory(given);
  const Resources resources = memory.resources().with_device(device);
  const int64_t length = custom_list_length(params);
  CustomGraph graph{Neighbors(x.rows(), params.k, resources), {}};
  graph.report.method = name_of(GraphMethod::nn_descent);
  const bool exact = x.rows() - 1 <= length;
  const DescentWish wish = exact ? DescentWish{} : custom_wish(params, graph.report);
  if (!exact) check_descent(wish.rules, length, device);
  if (x.rows() > 0) {
    const GraphRowsWish rows{kLikeCustom, params.k, params.seed, params.check_finite};
    const auto backend = make_custom_graph_backend_cuda(device.index, x, rows, metric, resources);
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
  graph.report.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  graph.report.peak_host_bytes = memory.host_bytes();
  graph.report.peak_device_bytes = memory.device_bytes();
  return graph;
}

}  // namespace kith::custom
