#include "graph/merge/merge_limit.hpp"

#include "exact/search_limit.hpp"
#include "graph/approximate_graph.hpp"
#include "graph/merge/joined_rows.hpp"
#include "graph/working_lists.hpp"

#include <algorithm>

namespace kith {
namespace {

// Rounds over so many rows such as these.
int64_t rounds_bytes(const GraphPart& like, int64_t rows, const GraphMergeParams& params, const Resources& resources) {
  const MatrixView all(like.x.data(), like.x.dtype(), {rows, like.x.cols(), like.x.cols()}, like.x.space());
  const KnnGraphParams wish{.k = like.graph.k(),
                            .metric = like.graph.metric(),
                            .method = GraphMethod::nn_descent,
                            .recall = params.recall,
                            .start = GraphStart::random,
                            .samples = params.samples,
                            .list_length = params.list_length};
  return approximate_graph_bytes(all, wish, resources);
}

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

int64_t merge_host_bytes(const std::vector<GraphPart>& parts, bool fresh, const GraphMergeParams& params,
                         const Resources& resources) {
  const Resources on_cpu = resources.with_device(Device::cpu());
  const int64_t k = parts[0].graph.k();
  int64_t rows = 0;
  int64_t kept = 0;  // for the whole time
  for (const GraphPart& part : parts) {
    rows += part.x.rows();
    if (!part.graph.space().host_readable()) kept += neighbors_bytes(part.x.rows(), k);
  }
  kept += neighbors_bytes(rows, k);
  if (fresh) kept += neighbors_bytes(parts[1].x.rows(), k);
  if (parts.size() > 2) kept += WorkingLists::bytes_for(rows, k);
  int64_t most = fresh ? build_bytes(parts[1], params, on_cpu) : 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts.size() == 1) most = std::max(most, rounds_bytes(parts[0], rows, params, on_cpu));
    for (size_t j = i + 1; j < parts.size(); ++j) {
      const int64_t both = parts[i].x.rows() + parts[j].x.rows();
      const bool copied = !JoinedRows::lie_together(parts[i].x, parts[j].x);
      const int64_t results = parts.size() > 2 ? neighbors_bytes(both, k) : 0;
      most = std::max(most, rounds_bytes(parts[i], both, params, on_cpu) + results +
                                (copied ? both * parts[i].x.cols() * size_of(parts[i].x.dtype()) : 0));
    }
  }
  return kept + most;
}

}  // namespace kith
