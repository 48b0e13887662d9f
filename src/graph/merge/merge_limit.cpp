#include "graph/merge/merge_limit.hpp"

#include "exact/search_limit.hpp"
#include "graph/approximate_graph.hpp"
#include "graph/merge/joined_rows.hpp"
#include "graph/working_lists.hpp"
#include "kernels/distance/canonical.hpp"

#include <algorithm>

namespace kith {
namespace {

// So many rows such as these.
MatrixView rows_like(const GraphPart& part, int64_t rows) {
  return {part.x.data(), part.x.dtype(), {rows, part.x.cols(), part.x.cols()}, part.x.space()};
}

KnnGraphParams rounds_of(const GraphPart& part, const GraphMergeParams& params) {
  return {.k = part.graph.k(),
          .metric = part.graph.metric(),
          .method = GraphMethod::nn_descent,
          .recall = params.recall,
          .start = GraphStart::random,
          .samples = params.samples,
          .list_length = params.list_length};
}

// Rounds over so many rows such as these.
int64_t rounds_bytes(const GraphPart& like, int64_t rows, const GraphMergeParams& params, const Resources& resources) {
  return approximate_graph_bytes(rows_like(like, rows), rounds_of(like, params), resources);
}

int64_t row_bytes(const GraphPart& part) { return part.x.cols() * size_of(part.x.dtype()); }

// What building a graph of these rows takes, by the method that wants most.
int64_t build_bytes(const GraphPart& part, const GraphMergeParams& params, const Resources& resources) {
  KnnGraphParams wish{.k = part.graph.k(), .metric = part.graph.metric(), .recall = params.recall};
  int64_t most = 0;
  const bool products = wish.metric == Metric::l2 || wish.metric == Metric::sqeuclidean ||
                        wish.metric == Metric::cosine || wish.metric == Metric::inner_product;
  for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent}) {
    if (method == GraphMethod::cells && !products) continue;
    wish.method = method;
    if (part.x.rows() > 0) most = std::max(most, approximate_graph_bytes(part.x, wish, resources));
  }
  const SearchShape shape{.queries = part.x.rows(), .rows = part.x.rows(), .cols = part.x.cols(),
                          .query_dtype = part.x.dtype(), .base_dtype = part.x.dtype(), .metric = wish.metric};
  return std::max(most, smallest_host_bytes(shape, {.k = wish.k, .without_self = true}, RowFilter(), resources));
}

}  // namespace

int64_t merge_host_bytes(const MergeNeeds& needs, const Resources& resources) {
  const std::vector<GraphPart>& parts = needs.parts;
  const Resources on_cpu = resources.with_device(Device::cpu());
  const int64_t k = parts[0].graph.k();
  int64_t rows = 0;
  int64_t kept = 0;  // for the whole time
  for (const GraphPart& part : parts) {
    rows += part.x.rows();
    if (!part.graph.space().host_readable()) kept += neighbors_bytes(part.x.rows(), k);
  }
  if (needs.results.space.host_readable()) kept += neighbors_bytes(needs.results.rows, k);
  if (needs.fresh) kept += neighbors_bytes(parts[1].x.rows(), k);
  if (parts.size() > 2) kept += WorkingLists::bytes_for(rows, k) + neighbors_bytes(rows, k);
  int64_t most = needs.fresh ? build_bytes(parts[1], needs.params, on_cpu) : 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts.size() == 1) most = std::max(most, rounds_bytes(parts[0], rows, needs.params, on_cpu));
    for (size_t j = i + 1; j < parts.size(); ++j) {
      const int64_t both = parts[i].x.rows() + parts[j].x.rows();
      const bool copied = !JoinedRows::lie_together(parts[i].x, parts[j].x);
      const int64_t results = parts.size() > 2 ? neighbors_bytes(both, k) : 0;
      most = std::max(most, rounds_bytes(parts[i], both, needs.params, on_cpu) + results +
                                (copied ? both * row_bytes(parts[i]) : 0));
    }
  }
  return kept + most;
}

int64_t merge_device_bytes(const MergeNeeds& needs) {
  constexpr int64_t kRounding = 4096;  // of each allocation
  const std::vector<GraphPart>& parts = needs.parts;
  const auto graph_bytes = [&](const GraphPart& part) {
    return GraphOutputShape{part.x.rows(), part.graph.k()}.bytes() + kRounding;
  };
  int64_t kept = needs.results.space.host_readable() ? 0 : needs.results.bytes() + kRounding;
  for (const GraphPart& part : parts) kept += graph_bytes(part);
  int64_t most = 0;
  if (needs.fresh && parts[1].x.rows() > 0) {
    KnnGraphParams wish{.k = parts[1].graph.k(), .metric = parts[1].graph.metric(), .recall = needs.params.recall};
    for (const GraphMethod method : {GraphMethod::cells, GraphMethod::nn_descent}) {
      if (method == GraphMethod::cells && !is_product(key_kind(wish.metric))) continue;
      wish.method = method;
      most = std::max(most, approximate_graph_device_bytes(parts[1].x, wish));
    }
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts.size() == 1) {
      most = std::max(most, approximate_graph_device_bytes(parts[0].x, rounds_of(parts[0], needs.params)));
    }
    for (size_t j = i + 1; j < parts.size(); ++j) {
      const int64_t both = parts[i].x.rows() + parts[j].x.rows();
      const bool copied = !parts[i].x.space().host_readable() && !JoinedRows::lie_together(parts[i].x, parts[j].x);
      most = std::max(most, approximate_graph_device_bytes(rows_like(parts[i], both), rounds_of(parts[i], needs.params)) +
                                (copied ? both * row_bytes(parts[i]) : 0));
    }
  }
  return kept + most;
}

}  // namespace kith
