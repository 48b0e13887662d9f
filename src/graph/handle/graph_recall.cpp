#include <kith/graph_recall.hpp>

#include <kith/error.hpp>
#include <kith/knn.hpp>
#include <kith/matrix_buffer.hpp>

#include "core/ordered_key.hpp"
#include "core/random.hpp"
#include "core/within_limits.hpp"
#include "graph/handle/graph_access.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/handle/true_lists.hpp"
#include "rows/narrowed_rows.hpp"
#include "rows/row_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace kith {
namespace {

// The share of a row's `count` nearest, the last of which has that key, among the first of its list.
double share_found(const uint64_t* list, uint32_t farthest, int64_t count) {
  int64_t found = 0;
  while (found < count && list[found] != kPadding && ordered_of(list[found]) <= farthest) ++found;
  return static_cast<double>(found) / static_cast<double>(count);
}

GraphRecall recall_of(const KnnGraph& graph, const MatrixView& x, const GraphRecallParams& params, int64_t k,
                      const Resources& resources) {
  GraphRecall result;
  result.rows = std::min(params.rows, graph.rows());
  const std::vector<uint32_t> rows = sample_rows(CounterRng(params.seed, 0), graph.rows(), result.rows, resources);
  MatrixBuffer queries(x.dtype(), result.rows, x.cols(), "rows to look at", resources);
  ViewSource source(x);
  const KnnParams search{.k = k + 1, .metric = graph.metric()};
  gather(source, rows, queries.mutable_view(), resources);
  Neighbors found(result.rows, k + 1, resources);
  call_or_count(resources, [&](const Resources& used) { knn(queries.view(), x, found.view(), search, used); });
  const HostArray<uint64_t> lists = true_lists(x, graph.metric(), rows, GraphAccess::view(graph), resources);
  if (counts_only(resources)) return result;
  const bool larger = larger_is_nearer(graph.metric());
  const int64_t ten = std::min<int64_t>(k, 10);
  std::vector<double> shares;
  double sum_of_ten = 0;
  for (int64_t i = 0; i < result.rows; ++i) {
    // Without the row itself, or without the last where its duplicates stand before it.
    std::vector<uint32_t> others;
    for (int64_t j = 0; j <= k; ++j) {
      if (found.ids(i)[j] == rows[static_cast<size_t>(i)]) continue;
      const float distance = found.distances(i)[j];
      others.push_back(ordered_key(larger ? -distance : distance));
    }
    const uint64_t* const list = lists.data() + i * graph.k();
    shares.push_back(share_found(list, others[static_cast<size_t>(k - 1)], k));
    sum_of_ten += share_found(list, others[static_cast<size_t>(ten - 1)], ten);
  }
  const auto count = static_cast<double>(result.rows);
  result.recall = std::accumulate(shares.begin(), shares.end(), 0.0) / count;
  result.recall_at_10 = sum_of_ten / count;
  if (result.rows > 1) {  // of a sample without replacement
    double squares = 0;
    for (const double share : shares) squares += (share - result.recall) * (share - result.recall);
    const double left = 1 - count / static_cast<double>(graph.rows());
    result.standard_error = std::sqrt(squares / (count - 1) / count * left);
  }
  return result;
}

}  // namespace

void GraphRecallParams::validate() const {
  if (rows < 1) throw InvalidArgument(fmt::format("rows = {}; at least one must be looked at", rows));
}

GraphRecall measure_recall(const KnnGraph& graph, const MatrixView& x, const GraphRecallParams& params,
                           const Resources& resources) {
  params.validate();
  check_row_count(graph.rows());
  if (x.rows() != graph.rows()) {
    throw InvalidArgument(fmt::format("{} vectors and a graph of {} rows; give the vectors that the graph was built of",
                                      x.rows(), graph.rows()));
  }
  if (is_narrowed(x)) {
    return with_narrowed(
        "the graph's recall", "x", x, graph.metric(), resources,
        [&](const MatrixView& rows, const Resources& used) { return measure_recall(graph, rows, params, used); });
  }
  const int64_t k = std::min(graph.k(), graph.rows() - 1);
  if (k < 1) throw InvalidArgument(fmt::format("a graph of {} rows has no neighbours to find", graph.rows()));
  check_graph(graph, resources);
  return within_limits("the graph's recall", resources,
                       [&](const Resources& used) { return recall_of(graph, x, params, k, used); });
}

}  // namespace kith
