// Which method builds a graph, and the limit and report around it.
#include <kith/device.hpp>
#include <kith/error.hpp>
#include <kith/knn.hpp>
#include <kith/knn_graph.hpp>

#include "core/named_limit.hpp"
#include "core/peak_memory.hpp"
#include "exact/knn_checks.hpp"
#include "exact/knn_loop.hpp"
#include "exact/search_limit.hpp"
#include "graph/approximate_graph.hpp"
#include "graph/exact_graph.hpp"
#include "graph/graph_access.hpp"
#include "graph/method_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace kith {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Whether the rows, the results and the caller's wish leave the work to the CPU: builders run there. Not where a GPU is
// at hand, which compares all pairs sooner. Asked of the machine alone: threads and free memory must not change a graph.
bool runs_on_cpu(const MatrixView& x, const NeighborsView& out, const Resources& resources) {
  if (!x.space().host_readable() || !out.space.host_readable()) return false;
  if (resources.device().kind == DeviceKind::automatic) return cuda_devices().empty();
  return resources.device().kind == DeviceKind::cpu;
}

// The method that is used, with parameters of its own where it was left to us.
KnnGraphParams settled(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                       const Resources& resources) {
  KnnGraphParams settled = params;
  if (params.method == GraphMethod::exact) return settled;
  if (params.method != GraphMethod::automatic) {
    const bool cuda = resources.device().kind == DeviceKind::cuda;
    if (cuda || !x.space().host_readable() || !out.space.host_readable()) {
      throw Unsupported(fmt::format("the method {} runs on the CPU: give rows in host memory and device cpu or auto, or "
                                    "use method exact",
                                    name_of(params.method)));
    }
    return settled;
  }
  const GraphProblem problem{x.rows(), x.cols(), params.k, params.metric, params.recall};
  settled.method = choose_graph_method(problem);
  if (settled.method == GraphMethod::exact) return settled;
  if (!runs_on_cpu(x, out, resources)) {
    settled.method = GraphMethod::exact;
    return settled;
  }
  const GraphCosts costs = predict_graph_costs(problem);
  resources.log(LogLevel::info,
                fmt::format("graph of {} rows: {} for a recall of {} (predicted {:.2g} of the work of exact)", x.rows(),
                            name_of(settled.method), params.recall,
                            std::min(costs.cells, costs.nn_descent) / costs.exact));
  return settled;
}

// Whether all others of a row fit its list: then they are all compared.
bool all_fit(const MatrixView& x, const KnnGraphParams& params) {
  const bool descends = params.method == GraphMethod::nn_descent;
  const int64_t length = descends ? params.list_length.value_or(default_list_length(params.k)) : params.k;
  return x.rows() - 1 <= length;
}

GraphReport exact_report(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                         const Resources& resources) {
  exact_graph(x, out, params, resources);
  GraphReport report;
  report.method = name_of(params.method == GraphMethod::automatic ? GraphMethod::exact : params.method);
  report.recall = GraphRecall{.recall = 1, .recall_at_10 = 1, .standard_error = 0, .rows = x.rows()};
  return report;
}

// Where cells were chosen for the caller and do not reach the recall, what is next best does.
GraphReport reach(const MatrixView& x, const NeighborsView& out, KnnGraphParams params, const Resources& resources) {
  const GraphCosts costs =
      predict_graph_costs({x.rows(), x.cols(), params.k, params.metric, params.recall});
  params.method = costs.exact <= costs.nn_descent ? GraphMethod::exact : GraphMethod::nn_descent;
  resources.log(LogLevel::info, fmt::format("cells do not reach a recall of {} on these rows; {} goes on", params.recall,
                                            name_of(params.method)));
  return params.method == GraphMethod::exact ? exact_report(x, out, params, resources)
                                             : approximate_graph(x, out, params, false, resources);
}

GraphReport build(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                  const Resources& resources) {
  const KnnGraphParams chosen = settled(x, out, params, resources);
  if (chosen.method == GraphMethod::exact || all_fit(x, chosen)) return exact_report(x, out, chosen, resources);
  check_graph_size(x.rows(), params.k);
  check_knn(RowsInfo(x), RowsInfo(x), {params.k, params.metric});
  check_output(out, x.rows(), params.k);
  const Resources on_cpu = resources.with_device(Device::cpu());
  const auto needed = [&] { return approximate_graph_bytes(x, chosen, on_cpu); };
  return naming_host_limit(needed, on_cpu, [&] {
    const bool ours = params.method == GraphMethod::automatic;
    const Resources quiet = ours ? on_cpu.with_log({}) : on_cpu;
    GraphReport report =
        approximate_graph(x, out, chosen, ours, chosen.method == GraphMethod::cells ? quiet : on_cpu);
    if (ours && !report.reached && chosen.method == GraphMethod::cells) return reach(x, out, chosen, on_cpu);
    return report;
  });
}

}  // namespace

KnnGraph knn_graph(const MatrixView& x, const KnnGraphParams& params, const Resources& resources) {
  params.validate();
  check_graph_size(x.rows(), params.k);
  const SearchShape shape = check_search(RowsInfo(x), RowsInfo(x), params.metric);
  const SearchWish wish{.k = params.k, .without_self = true};
  const PeakMemory memory(resources);
  return naming_the_limit({shape, wish, RowFilter(), neighbors_bytes(x.rows(), params.k)}, memory.resources(), [&] {
    Neighbors neighbors(x.rows(), params.k, memory.resources());
    GraphReport report = knn_graph(x, neighbors.view(), params, memory.resources());
    report.peak_host_bytes = memory.host_bytes();  // with the graph
    return GraphAccess::make(std::move(neighbors), params.metric, std::move(report));
  });
}

GraphReport knn_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                      const Resources& resources) {
  params.validate();
  const auto start = std::chrono::steady_clock::now();
  const PeakMemory memory(resources);
  GraphReport report = build(x, out, params, memory.resources());
  report.seconds = seconds_since(start);
  report.peak_host_bytes = memory.host_bytes();
  report.peak_device_bytes = memory.device_bytes();
  return report;
}

}  // namespace kith
