#include <kith/index_graph.hpp>

#include <kith/error.hpp>

#include "core/parallel_for.hpp"
#include "core/peak_memory.hpp"
#include "cuda/device_memory.hpp"
#include "exact/search_limit.hpp"
#include "graph/build/exact/exact_graph.hpp"
#include "graph/build/exact/without_self.hpp"
#include "graph/build/exact/without_self_cuda.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/handle/true_lists.hpp"
#include "graph/lists/control_rows.hpp"
#include "index/index_access.hpp"
#include "index/index_checks.hpp"
#include "index/index_limits.hpp"
#include "rows/finite_check.hpp"
#include "rows/knn_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace kith {
namespace {

// Rows searched at a time: their k + 1 results lie beside the graph.
constexpr int64_t kBatchEntries = int64_t{1} << 20;
constexpr int64_t kLargestBatch = 65536;

void check_rows(const Index& index, const MatrixView& x) {
  if (index.size() != x.rows()) {
    throw InvalidArgument(fmt::format("{} vectors and an index of {}; give those that the index holds, row i that with "
                                      "id i",
                                      x.rows(), index.size()));
  }
  if (!IndexAccess::ids_are_rows(index)) {
    throw InvalidArgument(
        "the index has ids that are not row numbers, and neighbours in a graph are rows: build an index whose row i has the id "
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

int64_t batch_of(int64_t rows, int64_t k) {
  return std::min(std::clamp<int64_t>(kBatchEntries / (k + 1), 1, kLargestBatch), rows);
}

// What the host needs beside the graph: a batch's results, and a search of it or then the recall of control rows.
int64_t smallest_bytes(const Index& index, const MatrixView& x, const IndexGraphParams& params, bool on_host,
                       const Resources& resources) {
  if (x.rows() == 0) return 0;
  const int64_t batch = batch_of(x.rows(), params.k);
  const int64_t searched = IndexAccess::smallest_search_bytes(index, x.slice(0, batch), search_of(params), resources);
  const int64_t controlled = std::min(kControlRows, x.rows());
  const SearchShape control{.queries = controlled, .rows = x.rows(), .cols = x.cols(), .query_dtype = x.dtype(),
                            .base_dtype = x.dtype(), .metric = index.params().metric};
  const int64_t row_bytes = x.cols() * size_of(x.dtype());
  const int64_t drawn = x.rows() / 8 + controlled * (row_bytes + 12 * (params.k + 1));
  const int64_t measured = std::max(smallest_host_bytes(control, {.k = params.k + 1}, RowFilter(), resources),
                                    16 * controlled * params.k + true_lists_rows(controlled, params.k) * row_bytes);
  return (on_host ? neighbors_bytes(batch, params.k + 1) : 0) + std::max(searched, drawn + measured);
}

void put_others(const NeighborsView& found, int64_t first, const NeighborsView& out, const Resources& resources) {
  if (out.space.host_readable()) return put_without_self(found, first, out);
  put_without_self_cuda(found, first, out, resources);
}

GraphReport search_graph(const Index& index, const MatrixView& x, const NeighborsView& out, const IndexGraphParams& params,
                         const Resources& given) {
  const auto start = std::chrono::steady_clock::now();
  const Index still = index.to(index.runs_on(), given);  // of this version, whatever is added meanwhile
  check_graph_size(x.rows(), params.k);
  check_rows(still, x);
  check_output(out, x.rows(), params.k);
  const PeakMemory memory(given);
  const Resources& resources = memory.resources();
  const SearchParams search = search_of(params);
  const Resources quiet = resources.with_progress({});
  const int64_t batch = batch_of(x.rows(), params.k);
  const GraphOutput some({batch, search.k, out.space}, resources);
  ProgressMeter meter("search", x.rows(), resources);
  for (int64_t first = 0; first < x.rows(); first += batch) {
    NeighborsView found = some.view();
    found.queries = std::min(batch, x.rows() - first);
    naming_rows("x", [&] { still.search(x.slice(first, found.queries), found, search, quiet); }, first);
    put_others(found, first, out, quiet);
    meter.add(found.queries);
    meter.poll();
  }
  meter.finish();
  GraphReport report;
  report.method = "index";
  report.parameters = {{"factory", still.factory()}};  // and what was asked for; else a search's defaults hold
  if (params.probes > 0) report.parameters.push_back({"probes", params.probes});
  if (params.refine > 0) report.parameters.push_back({"refine", params.refine});
  if (params.refine_from != nullptr) report.parameters.push_back({"refine_from", params.refine_from->path()});
  if (!out.space.host_readable()) wait_for_stream(out.space.device, resources);
  if (x.rows() > 0) report.recall = recall_of(out, x, still.params().metric, params.seed, quiet);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.peak_host_bytes = memory.host_bytes();
  report.peak_device_bytes = memory.device_bytes();
  return report;
}

// call(index, x, resources) where vectors of `x` lose an offset: with those that have lost it, and an index that takes
// them so.
template <typename Call>
decltype(auto) with_narrowed_graph(const Index& index, const MatrixView& x, const IndexGraphParams& params,
                                   const Resources& resources, const Call& call) {
  const auto [plain, offset] = IndexAccess::without_offset(index, resources);
  if (params.refine_from != nullptr) refuse_unshifted_file(offset, params.refine_from->path());
  return within_limits("the graph", resources, [&](const Resources& used) {
    const NarrowedRows narrowed("x", x, offset, OfRounding::warns, used);
    return call(plain, narrowed.view(), used);
  });
}

bool is_narrowed_for(const Index& index, const MatrixView& x) {
  return x.dtype() == DType::f64 || !index.offset().empty();
}

}  // namespace

void IndexGraphParams::validate() const {
  if (k < 1) throw InvalidArgument(fmt::format("k = {}; it must be at least 1", k));
}

GraphReport knn_graph(const Index& index, const MatrixView& x, const NeighborsView& out, const IndexGraphParams& params,
                      const Resources& resources) {
  params.validate();
  if (is_narrowed_for(index, x)) {
    return with_narrowed_graph(index, x, params, resources,
                               [&](const Index& plain, const MatrixView& rows, const Resources& used) {
                                 return knn_graph(plain, rows, out, params, used);
                               });
  }
  const auto least = [&] {
    return Footprint{smallest_bytes(index, x, params, out.space.host_readable(), resources)};
  };
  return within_index_limits("the graph", works_on_gpu(resources, {x.space(), out.space}), resources, least,
                             [&] { return search_graph(index, x, out, params, resources); });
}

KnnGraph knn_graph(const Index& index, const MatrixView& x, const IndexGraphParams& params, const Resources& resources) {
  params.validate();
  if (is_narrowed_for(index, x)) {
    return with_narrowed_graph(index, x, params, resources,
                               [&](const Index& plain, const MatrixView& rows, const Resources& used) {
                                 return knn_graph(plain, rows, params, used);
                               });
  }
  check_graph_size(x.rows(), params.k);
  check_rows(index, x);
  const GraphOutputShape shape{x.rows(), params.k, x.space().host_readable() ? MemorySpace::host() : x.space()};
  const bool on_host = shape.space.host_readable();
  const auto least = [&] {
    return footprint_of<Neighbors>(resources, on_host ? x.rows() : 0, params.k)
        .beside({smallest_bytes(index, x, params, on_host, resources)});
  };
  const auto fill = [&](const NeighborsView& out, const Resources& counted) {
    return search_graph(index, x, out, params, counted);
  };
  return within_index_limits("the graph", works_on_gpu(resources, {x.space()}), resources, least,
                             [&] { return make_graph(shape, index.params().metric, resources, fill); });
}

}  // namespace kith
