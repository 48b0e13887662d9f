#include "graph/build/method/build_graph.hpp"

#include <kith/error.hpp>
#include <kith/knn.hpp>

#include "core/named_limit.hpp"
#include "cuda/resolve_device.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "graph/build/exact/exact_graph.hpp"
#include "graph/build/method/approximate_graph.hpp"
#include "graph/build/method/method_choice.hpp"
#include "graph/build/nn_descent/descent_wish.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/lists/build_outcome.hpp"
#include "graph/lists/counted_work.hpp"
#include "rows/finite_check.hpp"
#include "rows/narrowed_rows.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace kith {
namespace {

// What the products of a method amount to, for the choice of a device.
Work work_of(const MatrixView& x, const NeighborsView& out, const GraphProblem& problem, GraphMethod method) {
  const GraphCosts costs = predict_graph_costs(problem, DeviceKind::cpu);
  const double products = method == GraphMethod::cells        ? costs.cells
                          : method == GraphMethod::nn_descent ? costs.nn_descent
                          : method == GraphMethod::exact      ? costs.exact
                                                              : costs.least();
  Work work = graph_work({x}, products);
  if (out.space.host_readable()) work.bytes += static_cast<double>(GraphOutputShape{out.queries, out.k}.bytes());
  return work;
}

// A graph may not depend on threads or free memory, and `automatic` chooses the method by the device: where both are left
// to us, the machine and the problem alone decide.
Device device_of(const MatrixView& x, const NeighborsView& out, const GraphProblem& problem, GraphMethod method,
                 const Resources& resources) {
  const bool anywhere = x.space().host_readable() && out.space.host_readable();
  if (method == GraphMethod::automatic && resources.device().kind == DeviceKind::automatic && anywhere) {
    constexpr int kThreads = 8;
    const Work work = work_of(x, out, problem, method);
    return worth_a_gpu(work, kThreads) ? choose_device(work, kThreads, cuda_devices()) : Device::cpu();
  }
  return graph_device("a graph by " + std::string(name_of(method)), fmt::format("graph of {} x {}", x.rows(), x.cols()),
                      {x.space(), out.space}, work_of(x, out, problem, method), resources);
}

// Whether all others of a row fit its list: then they are all compared.
bool all_fit(const MatrixView& x, const KnnGraphParams& params) {
  const bool descends = params.method == GraphMethod::nn_descent;
  const int64_t length = descends ? params.list_length.value_or(default_list_length(params.k)) : params.k;
  return x.rows() - 1 <= length;
}

struct SettledGraph {
  KnnGraphParams params;  // the method that is used, with parameters of its own where it was left to us
  Device device;

  bool is_exact(const MatrixView& x) const { return params.method == GraphMethod::exact || all_fit(x, params); }
};

SettledGraph settled(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                     const Resources& resources) {
  SettledGraph settled{params, resources.device()};
  if (params.method == GraphMethod::exact || params.recall == 1) {
    settled.params.method = GraphMethod::exact;
    return settled;
  }
  const GraphProblem problem{x.rows(), x.cols(), params.k, params.metric, params.recall};
  if (params.method != GraphMethod::automatic) {
    settled.device = device_of(x, out, problem, params.method, resources);
    return settled;
  }
  settled.device = device_of(x, out, problem, params.method, resources);
  const GraphCosts costs = predict_graph_costs(problem, settled.device.kind);
  settled.params.method = choose_graph_method(problem, settled.device.kind);
  if (settled.params.method == GraphMethod::exact) return settled;
  if (settled.params.method == GraphMethod::cells) {
    settled.params.probes = affordable_probes(problem, default_cells(x.rows(), params.k), settled.device.kind);
  }
  resources.log(LogLevel::info,
                fmt::format("graph of {} rows on {}: {} for a recall of {} (predicted {:.2g} of the time of exact)",
                            x.rows(), name_of(settled.device), name_of(settled.params.method), params.recall,
                            costs.least() / costs.exact));
  return settled;
}

GraphReport exact_report(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                         const Resources& resources) {
  exact_graph(x, out, params, resources);
  GraphReport report;
  report.method = name_of(params.method == GraphMethod::automatic ? GraphMethod::exact : params.method);
  report.recall = exact_recall(x.rows());
  return report;
}

// A method that was chosen for the caller. Where cells do not reach the recall, what is next best does.
GraphReport chosen_report(const MatrixView& x, const NeighborsView& out, KnnGraphParams chosen,
                          const Resources& resources) {
  const GraphProblem problem{x.rows(), x.cols(), chosen.k, chosen.metric, chosen.recall};
  const GraphCosts costs = predict_graph_costs(problem, resources.device().kind);
  const bool descends = costs.nn_descent < costs.exact;
  const bool warns = chosen.method != GraphMethod::cells || descends;
  GraphReport report = approximate_graph(x, out, chosen, {.gives_up = true, .goes_on = descends},
                                         warns ? resources : resources.with_log({}));
  if (report.reached || warns) return report;
  resources.log(LogLevel::info,
                fmt::format("cells do not reach a recall of {} on these rows; exact goes on", chosen.recall));
  chosen.method = GraphMethod::exact;
  return exact_report(x, out, chosen, resources);
}

}  // namespace

Work graph_work(const std::vector<MatrixView>& rows, double products) {
  constexpr double kGpuFlops = 1e14;
  Work work{.flops = 2 * products, .bytes = 0, .gpu_flops = kGpuFlops};
  for (const MatrixView& x : rows) {
    if (x.space().host_readable()) work.bytes += static_cast<double>(x.rows() * x.cols() * size_of(x.dtype()));
  }
  return work;
}

Device graph_device(const std::string& job, const std::string& description, std::vector<MemorySpace> spaces,
                    const Work& work, const Resources& resources) {
  DeviceRequest request;
  request.job = job;
  request.spaces = std::move(spaces);
  request.work = work;
  request.fits = [](Device) { return true; };
  request.description = [&] { return description; };
  return resolve_device(request, resources);
}

GraphReport build_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                        const Resources& resources) {
  const SettledGraph settled_graph = settled(x, out, params, resources);
  const KnnGraphParams& chosen = settled_graph.params;
  if (settled_graph.is_exact(x)) return exact_report(x, out, chosen, resources);
  check_graph_size(x.rows(), params.k);
  check_knn(RowsInfo(x), RowsInfo(x), {params.k, params.metric});
  check_output(out, x.rows(), params.k);
  const Resources there = resources.with_device(settled_graph.device);
  return params.method == GraphMethod::automatic ? chosen_report(x, out, chosen, there)
                                                 : approximate_graph(x, out, chosen, {}, there);
}

namespace {

// The call within the limits. `results`: what it fills, where it makes room for that. What cells and rounds take of a
// GPU is not counted before: the device's limit is named once it was too little.
template <typename Call>
auto within(const MatrixView& x, const GraphOutputShape& results, MemorySpace space, const KnnGraphParams& params,
            const Resources& resources, const Call& call) {
  if (!counts_memory(resources)) return call(resources);
  const NeighborsView out{nullptr, nullptr, x.rows(), params.k, space};
  const SettledGraph graph = settled(x, out, params, resources.with_log({}));
  const bool on_gpu = graph.device.kind == DeviceKind::cuda && !graph.is_exact(x);
  const bool there = !results.space.host_readable();
  const auto least = [&]() -> Footprint {
    if (!on_gpu) return footprint_of_call(resources, call);
    const SearchShape shape = check_search(RowsInfo(x), RowsInfo(x), params.metric);
    const int64_t host = search_footprint(shape, {.k = params.k}, RowFilter(), resources).host;
    return {host + (there ? 0 : results.bytes())};
  };
  return within_limits("the graph", resources, least, [&] {
    if (!on_gpu) return call(resources);
    const auto needed = [&] { return approximate_graph_device_bytes(x, graph.params) + (there ? results.bytes() : 0); };
    return naming_device_limit(needed, resources, [&] { return call(resources); });
  });
}

}  // namespace

KnnGraph knn_graph(const MatrixView& x, const KnnGraphParams& params, const Resources& resources) {
  params.validate();
  check_graph_size(x.rows(), params.k);
  check_search(RowsInfo(x), RowsInfo(x), params.metric);
  if (is_narrowed(x)) {
    return with_narrowed("the graph", "x", x, params.metric, resources,
                         [&](const MatrixView& rows, const Resources& used) { return knn_graph(rows, params, used); });
  }
  const GraphOutputShape shape{x.rows(), params.k, x.space().host_readable() ? MemorySpace::host() : x.space()};
  return within(x, shape, shape.space, params, resources, [&](const Resources& used) {
    return make_graph(shape, params.metric, used, [&](const NeighborsView& out, const Resources& counted) {
      return naming_rows("x", [&] { return build_graph(x, out, params, counted); });
    });
  });
}

GraphReport knn_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                      const Resources& resources) {
  params.validate();
  if (is_narrowed(x)) {
    return with_narrowed(
        "the graph", "x", x, params.metric, resources,
        [&](const MatrixView& rows, const Resources& used) { return knn_graph(rows, out, params, used); });
  }
  return within(x, {}, out.space, params, resources, [&](const Resources& used) {
    return measured(used, [&](const Resources& counted) {
      return naming_rows("x", [&] { return build_graph(x, out, params, counted); });
    });
  });
}

}  // namespace kith
