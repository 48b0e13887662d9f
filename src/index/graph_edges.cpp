#include "index/graph_edges.hpp"

#include <kith/error.hpp>
#include <kith/index.hpp>

#include "core/divide.hpp"
#include "graph/search/build/build_walk_graph.hpp"
#include "index/graph_state.hpp"
#include "index/index_access.hpp"
#include "rows/finite_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

// Calls use(row, other) for each edge, place by place. Rows of one place form a chain, whose edges come first, so that
// they survive in a reader that limits the number of edges.
template <typename Use>
void visit_edges(const PlaceRows& places, const uint32_t* edges, int64_t degree, const Use& use) {
  for (int64_t place = 0; place < places.places; ++place) {
    const uint32_t* const own = places.rows + places.offsets[place];
    const int64_t count = int64_t{places.offsets[place + 1]} - int64_t{places.offsets[place]};
    const uint32_t* const list = edges + place * degree;
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0) use(own[i], own[i - 1]);
      if (i + 1 < count) use(own[i], own[i + 1]);
    }
    for (int64_t i = 0; i < degree && list[i] != kNoEdge; ++i) use(own[0], places.rows[places.offsets[list[i]]]);
  }
}

}  // namespace

IndexEdges edges_between_rows(const PlaceRows& places, const uint32_t* edges, int64_t degree, int64_t rows,
                              const Resources& resources) {
  int64_t total = 0;
  visit_edges(places, edges, degree, [&](uint32_t, uint32_t) { ++total; });
  IndexEdges result(rows, total, resources);
  int64_t* const offsets = result.offsets();
  std::fill(offsets, offsets + rows + 1, int64_t{0});
  visit_edges(places, edges, degree, [&](uint32_t row, uint32_t) { ++offsets[row + 1]; });
  for (int64_t row = 0; row < rows; ++row) offsets[row + 1] += offsets[row];
  // Filling advances each offset to the end of its row; shifting all of them by one restores the beginnings.
  visit_edges(places, edges, degree, [&](uint32_t row, uint32_t other) { result.columns()[offsets[row]++] = other; });
  std::copy_backward(offsets, offsets + rows, offsets + rows + 1);
  offsets[0] = 0;
  return result;
}

IndexEdges edges_between_rows(const GraphParts& graph, int64_t rows, const Resources& resources) {
  const PlaceRows places{graph.place_offsets.data(), graph.place_rows.data(), graph.places, graph.rows};
  return edges_between_rows(places, graph.edges.data(), graph.degree, rows, resources);
}

int64_t degree_for(int64_t neighbors) {
  const int64_t degree = std::max(round_up(neighbors, kDegreeStep), kDegreeStep);
  return degree <= kMostDegree ? degree : 0;
}

void join_parts(IndexParts& parts, const HostArray<uint32_t>& lists, int64_t degree, const Resources& resources) {
  parts.factory = fmt::format("Graph{}", degree);
  if (parts.rows < kFewestWalkedRows) return;
  if (parts.cols > kMostWalkColumns) {
    throw Unsupported(
        fmt::format("a graph of vectors of {} columns; a Graph index takes up to {}", parts.cols, kMostWalkColumns));
  }
  // The file's reader refuses such values afterwards, with the row.
  const MatrixView& rows = parts.flat.front().view();
  for (int64_t row = 0; row < rows.rows(); ++row) {
    if (!row_is_finite(rows, row)) return;
  }
  const WalkGraphParams params{.metric = parts.metric, .degree = degree, .seed = parts.seed, .start = lists.data()};
  parts.graph = parts_of(build_walk_graph(rows, params, resources), {}, resources);
}

IndexEdges Index::edges(const Resources& resources) const {
  if (info().degree == 0) {
    throw Unsupported(fmt::format("edges of an index '{}', which has no graph; \"Graph32\" has one", factory()));
  }
  const IndexParts parts = IndexAccess::parts(*this, resources);
  if (parts.graph) return edges_between_rows(*parts.graph, parts.rows, resources);
  IndexEdges none(parts.rows, 0, resources);
  std::fill(none.offsets(), none.offsets() + parts.rows + 1, int64_t{0});
  return none;
}

}  // namespace kith
