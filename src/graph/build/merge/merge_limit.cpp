#include "graph/build/merge/merge_limit.hpp"

#include "exact/search_limit.hpp"
#include "graph/build/merge/joined_rows.hpp"
#include "graph/build/method/approximate_graph.hpp"
#include "graph/build/method/method_choice.hpp"
#include "graph/build/nn_descent/descent_wish.hpp"
#include "graph/lists/control_rows.hpp"
#include "graph/lists/working_lists.hpp"

#include <algorithm>
#include <optional>

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

// How the graph of new rows is built, the same way on every device; none: every pair is compared.
std::optional<KnnGraphParams> build_of(const GraphPart& fresh, const GraphMergeParams& params) {
  KnnGraphParams wish{.k = fresh.graph.k(), .metric = fresh.graph.metric(), .recall = params.recall};
  wish.method = choose_graph_method({fresh.x.rows(), fresh.x.cols(), wish.k, wish.metric, wish.recall}, DeviceKind::cpu);
  const int64_t length = wish.method == GraphMethod::nn_descent ? default_list_length(wish.k) : wish.k;
  if (wish.method == GraphMethod::exact || fresh.x.rows() - 1 <= length) return std::nullopt;
  return wish;
}

int64_t build_bytes(const GraphPart& fresh, const GraphMergeParams& params, const Resources& resources) {
  if (const auto wish = build_of(fresh, params)) return approximate_graph_bytes(fresh.x, *wish, resources);
  const SearchShape shape{.queries = fresh.x.rows(), .rows = fresh.x.rows(), .cols = fresh.x.cols(),
                          .query_dtype = fresh.x.dtype(), .base_dtype = fresh.x.dtype(), .metric = fresh.graph.metric()};
  return smallest_host_bytes(shape, {.k = fresh.graph.k(), .without_self = true}, RowFilter(), resources);
}

// Whether a GPU is sure to work, where rows do not leave it.
bool works_on_gpu(const std::vector<GraphPart>& parts, const Resources& resources) {
  if (resources.device().kind == DeviceKind::cuda) return true;
  return std::any_of(parts.begin(), parts.end(), [](const GraphPart& part) { return !part.x.space().host_readable(); });
}

// What the host keeps of rounds on a GPU: control rows, their lists and results, surveys, rows on their way, and where few rows
// are compared with all, a batch of results.
int64_t bytes_beside_gpu(const GraphPart& like, int64_t rows, const GraphMergeParams& params) {
  constexpr int64_t kSmall = int64_t{32} << 20;
  constexpr int64_t kBatch = 16384;  // merge_pair.cpp
  const int64_t length = params.list_length.value_or(default_list_length(like.graph.k()));
  return kControlRows * (row_bytes(like) + 12 * (like.graph.k() + 1) + 8 * length) + rows / 16 + kSmall +
         neighbors_bytes(std::min(rows, kBatch), like.graph.k());
}

}  // namespace

int64_t merge_host_bytes(const MergeNeeds& needs, const Resources& resources) {
  const std::vector<GraphPart>& parts = needs.parts;
  const bool on_gpu = works_on_gpu(parts, resources);
  const Resources on_cpu = resources.with_device(Device::cpu());
  const int64_t k = parts[0].graph.k();
  int64_t rows = 0;
  int64_t kept = 0;  // for the whole time
  for (const GraphPart& part : parts) {
    rows += part.x.rows();
    if (!on_gpu && !part.graph.space().host_readable()) kept += neighbors_bytes(part.x.rows(), k);
  }
  if (needs.results.space.host_readable()) kept += neighbors_bytes(needs.results.rows, k);
  if (needs.fresh && !on_gpu) kept += neighbors_bytes(parts[1].x.rows(), k);
  if (parts.size() > 2) {
    kept += WorkingLists::bytes_for(rows, k);
    if (!needs.out_space.host_readable()) kept += neighbors_bytes(rows, k);  // on their way there
  }
  const auto rounds = [&](const GraphPart& like, int64_t count) {
    return on_gpu ? bytes_beside_gpu(like, count, needs.params) : rounds_bytes(like, count, needs.params, on_cpu);
  };
  int64_t most = needs.fresh && !on_gpu ? build_bytes(parts[1], needs.params, on_cpu) : 0;
  if (parts.size() == 1) most = std::max(most, rounds(parts[0], rows));
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t j = i + 1; j < parts.size(); ++j) {
      const int64_t both = parts[i].x.rows() + parts[j].x.rows();
      const bool copied = !on_gpu && !JoinedRows::lie_together(parts[i].x, parts[j].x);
      const int64_t results = parts.size() > 2 ? neighbors_bytes(both, k) : 0;
      most = std::max(most, rounds(parts[i], both) + results + (copied ? both * row_bytes(parts[i]) : 0));
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
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool made = needs.fresh && i == 1;  // there; others lie there, or are brought
    if (made || parts[i].graph.space().host_readable()) kept += graph_bytes(parts[i]);
  }
  int64_t most = 0;
  if (needs.fresh) {
    if (const auto wish = build_of(parts[1], needs.params)) most = approximate_graph_device_bytes(parts[1].x, *wish);
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
