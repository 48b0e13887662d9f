#include "graph/merge/part_checks.hpp"

#include <kith/error.hpp>

#include "exact/knn_checks.hpp"
#include "graph/graph_check.hpp"
#include "graph/pairs/pair_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kEdgesLookedAt = 256;
constexpr float kTolerance = 1e-3f;  // graphs that were found elsewhere are rounded otherwise

}  // namespace

void check_part(const GraphPart& part, std::string_view what, const Resources& resources) {
  if (!part.x.space().host_readable()) {
    throw Unsupported(fmt::format("the rows of {} lie in a GPU's memory; graphs are merged on the CPU: copy them", what));
  }
  if (part.graph.rows() != part.x.rows()) {
    throw InvalidArgument(fmt::format("{} has {} rows and its vectors are {}; give the vectors that the graph was built of",
                                      what, part.graph.rows(), part.x.rows()));
  }
  if (part.graph.k() < 1) {
    throw InvalidArgument(fmt::format("{} has k = 0; graphs that are merged, extended or refined have neighbours", what));
  }
  if (part.graph.rows() == 0) return;
  check_search(RowsInfo(part.x), RowsInfo(part.x), part.graph.metric());
  check_graph(part.graph, resources);
  PairKeys keys(part.x, key_kind(part.graph.metric()));
  const int64_t rows = part.graph.rows();
  const int64_t looked_at = std::min(rows, kEdgesLookedAt);
  for (int64_t i = 0; i < looked_at; ++i) {
    const int64_t row = i * rows / looked_at;
    if (part.graph.ids(row)[0] < 0) continue;
    const auto other = static_cast<uint32_t>(part.graph.ids(row)[0]);
    float key = 0;
    keys.of(static_cast<uint32_t>(row), &other, 1, &key);
    const float distance = larger_is_nearer(part.graph.metric()) ? -key : key;
    const float told = part.graph.distances(row)[0];
    if (distance == told || std::isnan(distance)) continue;  // infinite both, or nothing to compare with
    if (!(std::abs(distance - told) <= kTolerance * std::max(1.0f, std::abs(distance)))) {
      throw InvalidArgument(fmt::format("{} says that rows {} and {} are {} apart by {}, and the vectors are {} apart; give "
                                        "the vectors that the graph was built of",
                                        what, row, other, told, name_of(part.graph.metric()), distance));
    }
  }
}

void check_same(const GraphPart& a, const GraphPart& b) {
  if (a.graph.k() != b.graph.k()) {
    throw InvalidArgument(fmt::format("graphs of k = {} and k = {}; build both with the same k", a.graph.k(), b.graph.k()));
  }
  if (a.graph.metric() != b.graph.metric()) {
    throw InvalidArgument(fmt::format("graphs by {} and by {}; build both with the same metric", name_of(a.graph.metric()),
                                      name_of(b.graph.metric())));
  }
  if (a.x.cols() != b.x.cols() || a.x.dtype() != b.x.dtype()) {
    throw InvalidArgument(fmt::format("rows of {} values ({}) and of {} ({}); both sets must have the same columns and "
                                      "dtype",
                                      a.x.cols(), name_of(a.x.dtype()), b.x.cols(), name_of(b.x.dtype())));
  }
}

}  // namespace kith
