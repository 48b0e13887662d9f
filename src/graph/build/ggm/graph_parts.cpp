#include "graph/build/ggm/graph_parts.hpp"

#include <kith/error.hpp>

#include "core/within_limits.hpp"
#include "cuda/device_memory.hpp"
#include "exact/search_checks.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/lists/pairs/pair_keys.hpp"
#include "rows/row_blocks.hpp"
#include "rows/row_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kEdgesLookedAt = 256;
constexpr float kTolerance = 1e-3f;  // graphs that were found elsewhere are rounded otherwise

struct Edge {
  uint32_t row;
  uint32_t other;
  float distance;  // as the graph has it
};

// The first values of some rows, from any memory.
template <typename T>
std::vector<T> first_values(const T* values, const KnnGraph& graph, const std::vector<uint32_t>& rows,
                            const Resources& resources) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  ViewSource source(MatrixView(values, DType::u8, {graph.rows(), kBytes, graph.k() * kBytes}, graph.space()));
  std::vector<T> first(rows.size());
  const MutableMatrixView out(first.data(), DType::u8, {static_cast<int64_t>(rows.size()), kBytes, kBytes});
  gather(source, rows, out, resources);
  return first;
}

// First edges of rows that are spread over all.
std::vector<Edge> some_edges(const KnnGraph& graph, const Resources& resources) {
  std::vector<uint32_t> rows;
  const int64_t looked_at = std::min(graph.rows(), kEdgesLookedAt);
  for (int64_t i = 0; i < looked_at; ++i) rows.push_back(static_cast<uint32_t>(i * graph.rows() / looked_at));
  const std::vector<int64_t> ids = first_values(graph.ids(), graph, rows, resources);
  const std::vector<float> distances = first_values(graph.distances(), graph, rows, resources);
  std::vector<Edge> edges;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (ids[i] >= 0) edges.push_back({rows[i], static_cast<uint32_t>(ids[i]), distances[i]});
  }
  return edges;
}

// The rows at both ends of the edges, in turn, from any memory.
MatrixBuffer ends_of(RowSource& source, const std::vector<Edge>& edges, const Resources& resources) {
  std::vector<uint32_t> rows;
  for (const Edge& edge : edges) rows.insert(rows.end(), {edge.row, edge.other});
  const RowsInfo info = source.info();
  MatrixBuffer ends(info.dtype, static_cast<int64_t>(rows.size()), info.cols, "rows to be compared", resources);
  gather(source, rows, ends.mutable_view(), resources);
  return ends;
}

// `must_equal`: not only to within what graphs of others are rounded by.
void check_edges(const KnnGraph& graph, RowSource& x, std::string_view what, bool must_equal,
                 const Resources& resources) {
  const Metric metric = graph.metric();
  const std::vector<Edge> edges = some_edges(graph, resources);
  const MatrixBuffer ends = ends_of(x, edges, resources);
  if (counts_only(resources)) return;
  PairKeys keys(ends.view(), key_kind(metric));
  for (size_t i = 0; i < edges.size(); ++i) {
    const auto [row, other, told] = edges[i];
    const auto place = static_cast<uint32_t>(2 * i);
    const uint32_t next = place + 1;
    float key = 0;
    keys.of(place, &next, 1, &key);
    const float distance = larger_is_nearer(metric) ? -key : key;
    if (distance == told || std::isnan(distance)) continue;  // infinite both, or nothing to compare with
    if (!(std::abs(distance - told) <= kTolerance * std::max(1.0f, std::abs(distance)))) {
      throw OtherVectors(
          fmt::format("{} says that rows {} and {} are {} apart by {}, and the vectors are {} apart; give the "
                      "vectors that the graph was built of, moved as they were then, or refine a graph whose "
                      "distances are others, as those of a compressed index, first",
                      what, row, other, told, name_of(metric), distance));
    }
    if (must_equal) {
      throw InvalidArgument(
          fmt::format("{} says that rows {} and {} are {} apart by {}, where Kith computes {}; refine a "
                      "graph that others have built first",
                      what, row, other, told, name_of(metric), distance));
    }
  }
}

bool lie_together(const MatrixView& a, const MatrixView& b) {
  if (b.rows() == 0) return true;
  return a.rows() > 0 && a.row(a.rows()) == b.row(0) && a.row_stride() == b.row_stride() && a.space() == b.space();
}

}  // namespace

void check_part_shape(const GraphPart& part, std::string_view what) {
  if (part.graph.rows() != part.x.rows()) {
    throw InvalidArgument(
        fmt::format("{} has {} rows and its vectors are {}; give the vectors that the graph was built of", what,
                    part.graph.rows(), part.x.rows()));
  }
  if (part.graph.k() < 1) {
    throw InvalidArgument(
        fmt::format("{} has k = 0; graphs that are merged, extended or refined have neighbours", what));
  }
  if (part.graph.rows() > 0) check_search(RowsInfo(part.x), RowsInfo(part.x), part.graph.metric());
}

void check_part(const GraphPart& part, std::string_view what, PartDistances distances, const Resources& resources) {
  if (part.graph.rows() == 0) return;
  check_graph(part.graph, resources);
  if (distances == PartDistances::any) return;
  ViewSource x(part.x);
  check_edges(part.graph, x, what, false, resources);
}

void check_part(const GraphOfFile& part, std::string_view what, PartDistances distances, const Resources& resources) {
  if (part.graph.rows() == 0) return;
  check_graph(part.graph, resources);
  if (distances == PartDistances::any) return;
  FileSource x(part.x);
  check_edges(part.graph, x, what, distances == PartDistances::as_computed, resources);
}

void check_same(const GraphPart& a, const GraphPart& b) {
  if (a.graph.k() != b.graph.k()) {
    throw InvalidArgument(
        fmt::format("graphs of k = {} and k = {}; build both with the same k", a.graph.k(), b.graph.k()));
  }
  if (a.graph.metric() != b.graph.metric()) {
    throw InvalidArgument(fmt::format("graphs by {} and by {}; build both with the same metric",
                                      name_of(a.graph.metric()), name_of(b.graph.metric())));
  }
  if (a.x.cols() != b.x.cols() || a.x.dtype() != b.x.dtype()) {
    throw InvalidArgument(
        fmt::format("rows of {} values ({}) and of {} ({}); both sets must have the same columns and "
                    "dtype",
                    a.x.cols(), name_of(a.x.dtype()), b.x.cols(), name_of(b.x.dtype())));
  }
}

int64_t merge_list_length(const GraphMergeParams& params, int64_t k) {
  if (params.list_length && *params.list_length < k) {
    throw InvalidArgument(
        fmt::format("list_length = {}; a working list holds at least the k = {} neighbours", *params.list_length, k));
  }
  return params.list_length.value_or(default_list_length(k));
}

JoinedRows::JoinedRows(const MatrixView& a, const MatrixView& b, Device device, const Resources& resources) {
  const int64_t rows = a.rows() + b.rows();
  const int64_t row_bytes = a.cols() * size_of(a.dtype());
  if (lie_together(a, b)) {
    view_ = MatrixView(a.data(), a.dtype(), {rows, a.cols(), a.row_stride()}, a.space());
  } else if (device.kind == DeviceKind::cuda) {
    device_memory_ = allocate_on_device(rows * row_bytes, "the rows of both sets", device.index, resources);
    view_ = MatrixView(device_memory_.get(), a.dtype(), {rows, a.cols(), a.cols()}, MemorySpace::cuda(device.index));
    copy_to_device(a, device_memory_.get(), device.index, resources);
    copy_to_device(b, device_memory_.get() + a.rows() * row_bytes, device.index, resources);
  } else {
    memory_ = MatrixBuffer(a.dtype(), rows, a.cols(), "the rows of both sets", resources);
    view_ = memory_.view();
    const MutableMatrixView out = memory_.mutable_view();
    for_row_blocks("join rows", rows, resources.with_progress({}), [&](int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
        std::memcpy(out.row(i), i < a.rows() ? a.row(i) : b.row(i - a.rows()), static_cast<size_t>(row_bytes));
      }
    });
  }
}

}  // namespace kith
