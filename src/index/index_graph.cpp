#include <kith/index_graph.hpp>

#include <kith/error.hpp>

#include "core/parallel_for.hpp"
#include "core/peak_memory.hpp"
#include "exact/knn_checks.hpp"
#include "graph/exact_graph.hpp"
#include "graph/graph_access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kBatch = 65536;

// The neighbours of row `row` without the row itself: the first k of the k + 1 that were found, or of the others.
void put_others(const Neighbors& found, int64_t query, int64_t row, int64_t rows, float farthest,
                const NeighborsView& out) {
  int64_t at = 0;
  for (int64_t j = 0; j < found.k() && at < out.k; ++j) {
    const int64_t id = found.ids(query)[j];
    if (id >= rows) {
      throw InvalidArgument(fmt::format("the index found the id {}, and there are {} rows: give the vectors that it holds, "
                                        "the one with the id i as row i",
                                        id, rows));
    }
    if (id == row || id < 0) continue;
    out.ids[row * out.k + at] = id;
    out.distances[row * out.k + at] = found.distances(query)[j];
    ++at;
  }
  for (; at < out.k; ++at) {
    out.ids[row * out.k + at] = -1;
    out.distances[row * out.k + at] = farthest;
  }
}

}  // namespace

KnnGraph knn_graph(const Index& index, const MatrixView& x, const SearchParams& params, const Resources& resources) {
  check_graph_size(x.rows(), params.k);
  if (x.rows() != index.size()) {
    throw InvalidArgument(fmt::format("{} rows, and the index holds {}: give the vectors that it holds", x.rows(),
                                      index.size()));
  }
  const auto start = std::chrono::steady_clock::now();
  const PeakMemory memory(resources);
  const Metric metric = index.params().metric;
  const float farthest = larger_is_nearer(metric) ? -std::numeric_limits<float>::infinity()
                                                  : std::numeric_limits<float>::infinity();
  Neighbors neighbors(x.rows(), params.k, memory.resources());
  SearchParams wish = params;
  wish.k = params.k + 1;
  const Resources quiet = memory.resources().with_progress({});
  ProgressMeter meter("search", x.rows(), memory.resources());
  for (int64_t first = 0; first < x.rows(); first += kBatch) {
    const int64_t count = std::min(kBatch, x.rows() - first);
    const Neighbors found = index.search(x.slice(first, count), wish, quiet);
    for (int64_t i = 0; i < count; ++i) put_others(found, i, first + i, x.rows(), farthest, neighbors.view());
    meter.add(count);
    meter.poll();
  }
  meter.finish();
  GraphReport report;
  report.method = "index";
  report.parameters.push_back({"index", index.factory()});
  if (params.probes > 0) report.parameters.push_back({"probes", params.probes});
  if (params.refine > 0) report.parameters.push_back({"refine", params.refine});
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.peak_host_bytes = memory.host_bytes();
  report.peak_device_bytes = memory.device_bytes();
  return GraphAccess::make(std::move(neighbors), metric, std::move(report));
}

}  // namespace kith
