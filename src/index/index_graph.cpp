#include <kith/index_graph.hpp>

#include <kith/error.hpp>

#include "core/parallel_for.hpp"
#include "cuda/device_memory.hpp"
#include "graph/build/exact/exact_graph.hpp"
#include "graph/build/exact/without_self.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/handle/true_lists.hpp"
#include "graph/lists/control_rows.hpp"
#include "index/index_access.hpp"
#include "index/index_checks.hpp"
#include "rows/finite_check.hpp"
#include "rows/knn_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kith {
namespace {

// The number of results per search, beside the graph; a row has k + 1 of them.
constexpr int64_t kBatchEntries = int64_t{1} << 20;
constexpr int64_t kLargestBatch = 65536;

void check_rows(const Index& index, const MatrixView& x) {
  if (index.size() != x.rows()) {
    throw InvalidArgument(
        fmt::format("{} vectors and an index of {}; give those that the index holds, row i that with "
                    "id i",
                    x.rows(), index.size()));
  }
  if (!IndexAccess::ids_are_rows(index)) {
    throw InvalidArgument(
        "the index has ids that are not row numbers, and neighbours in a graph are rows: build an index whose row i "
        "has the id "
        "i, as one without ids has");
  }
}

GraphRecall recall_of(const NeighborsView& graph, const MatrixView& x, Metric metric, uint64_t seed,
                      const Resources& resources) {
  const ControlRows control(x, metric, graph.k, seed, resources);
  const HostArray<uint64_t> lists = true_lists(x, metric, control.rows(), graph, resources);
  const RecallEstimate estimate = control.measure(lists.data(), graph.k);
  return {estimate.recall, estimate.recall_at_10, estimate.error, static_cast<int64_t>(control.rows().size())};
}

SearchParams search_of(const IndexGraphParams& params) {
  return {.k = params.k + 1, .probes = params.probes, .refine = params.refine, .refine_from = params.refine_from};
}

void put_others(const NeighborsView& found, int64_t first, const NeighborsView& out, const Resources& resources) {
  if (out.space.host_readable()) return put_without_self(found, first, out);
  put_without_self_cuda(found, first, out, resources);
}

GraphReport search_graph(const Index& index, const MatrixView& given, const NeighborsView& out,
                         const IndexGraphParams& params, const Resources& resources) {
  // Searches this version, even if vectors are added meanwhile.
  const auto version = IndexAccess::without_offset(index, resources);
  const Index& still = version.first;
  const Offset& offset = version.second;
  if (params.refine_from != nullptr) refuse_unshifted_file(offset, params.refine_from->path());
  const NarrowedRows narrowed("x", given, offset, OfRounding::warns, resources);
  const MatrixView& x = narrowed.view();
  check_graph_size(x.rows(), params.k);
  check_rows(still, x);
  check_output(out, x.rows(), params.k);
  const SearchParams search = search_of(params);
  const Resources quiet = resources.with_progress({});
  const int64_t batch = std::min(std::clamp<int64_t>(kBatchEntries / search.k, 1, kLargestBatch), x.rows());
  const GraphOutput some({batch, search.k, out.space}, resources);
  if (counts_only(resources) && batch > 0) {
    count_call(resources, [&](const Resources& used) { still.search(x.slice(0, batch), some.view(), search, used); });
    recall_of(out, x, still.params().metric, params.seed, resources);
    return {};
  }
  ProgressMeter meter("search", x.rows(), resources);
  for (int64_t first = 0; first < x.rows(); first += batch) {
    NeighborsView found = some.view();
    found.queries = std::min(batch, x.rows() - first);
    naming_rows(
        "x", [&] { still.search(x.slice(first, found.queries), found, search, quiet); }, first);
    put_others(found, first, out, quiet);
    meter.add(found.queries);
    meter.poll();
  }
  meter.finish();
  GraphReport report;
  report.method = "index";
  report.parameters = {{"factory", still.factory()}};  // and the given ones; others are the search's defaults
  if (params.probes > 0) report.parameters.push_back({"probes", params.probes});
  if (params.refine > 0) report.parameters.push_back({"refine", params.refine});
  if (params.refine_from != nullptr) report.parameters.push_back({"refine_from", params.refine_from->path()});
  if (!out.space.host_readable()) wait_for_stream(out.space.device, resources);
  if (x.rows() > 0) report.recall = recall_of(out, x, still.params().metric, params.seed, quiet);
  return report;
}

}  // namespace

void IndexGraphParams::validate() const {
  if (k < 1) throw InvalidArgument(fmt::format("k = {}; it must be at least 1", k));
}

GraphReport knn_graph(const Index& index, const MatrixView& x, const NeighborsView& out, const IndexGraphParams& params,
                      const Resources& resources) {
  params.validate();
  return within_limits("the graph", resources, [&](const Resources& used) {
    return measured(used, [&](const Resources& peaks) { return search_graph(index, x, out, params, peaks); });
  });
}

KnnGraph knn_graph(const Index& index, const MatrixView& x, const IndexGraphParams& params,
                   const Resources& resources) {
  params.validate();
  check_graph_size(x.rows(), params.k);
  check_rows(index, x);
  const GraphOutputShape shape{x.rows(), params.k, x.space().host_readable() ? MemorySpace::host() : x.space()};
  const auto fill = [&](const NeighborsView& out, const Resources& peaks) {
    return search_graph(index, x, out, params, peaks);
  };
  return within_limits("the graph", resources,
                       [&](const Resources& used) { return make_graph(shape, index.params().metric, used, fill); });
}

}  // namespace kith
