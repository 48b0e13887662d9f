// Which method builds a graph, and the limit and report around it.
#include <kith/error.hpp>
#include <kith/knn.hpp>
#include <kith/knn_graph.hpp>

#include "core/name_table.hpp"
#include "core/peak_memory.hpp"
#include "exact/knn_checks.hpp"
#include "exact/search_limit.hpp"
#include "graph/exact_graph.hpp"
#include "graph/graph_access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace kith {
namespace {

constexpr NameTable<GraphMethod, 2> kMethods{{{{GraphMethod::automatic, "auto"}, {GraphMethod::exact, "exact"}}}};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::string_view name_of(GraphMethod method) { return kMethods.name(method); }
GraphMethod parse_graph_method(std::string_view name) { return kMethods.parse(name, "graph method"); }

void KnnGraphParams::validate() const {
  KnnParams{k, metric}.validate();
  if (name_of(method) == "?") throw InvalidArgument(fmt::format("graph method {} is none", static_cast<int>(method)));
}

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
  exact_graph(x, out, params, memory.resources());
  GraphReport report;
  report.method = name_of(GraphMethod::exact);
  report.recall = GraphRecall{.recall = 1, .recall_at_10 = 1, .standard_error = 0, .rows = x.rows()};
  report.seconds = seconds_since(start);
  report.peak_host_bytes = memory.host_bytes();
  report.peak_device_bytes = memory.device_bytes();
  return report;
}

}  // namespace kith
