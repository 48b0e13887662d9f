// Slow, obvious answers about paths in a k-NN graph taken both ways: Kruskal's forest, widths by trying every row in
// between, and the first of the shortest paths by breadth-first search.
#pragma once

#include <kith/knn_graph.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

namespace kith::reference {

struct Edge {
  float weight;
  int64_t smaller;
  int64_t larger;
  auto order() const { return std::tuple(weight, smaller, larger); }
  bool operator<(const Edge& other) const { return order() < other.order(); }
  bool operator==(const Edge& other) const { return order() == other.order(); }
};

inline std::vector<Edge> edges_of(const KnnGraph& graph) {
  std::vector<Edge> edges;
  for (int64_t i = 0; i < graph.rows(); ++i) {
    for (int64_t j = 0; j < graph.k() && graph.ids(i)[j] >= 0; ++j) {
      const int64_t other = graph.ids(i)[j];
      edges.push_back({graph.distances(i)[j], std::min(i, other), std::max(i, other)});
    }
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

// Sorted.
inline std::vector<Edge> spanning_forest(const std::vector<Edge>& sorted, int64_t rows) {
  std::vector<int64_t> part(static_cast<size_t>(rows));
  std::iota(part.begin(), part.end(), 0);
  std::vector<Edge> forest;
  for (const Edge& edge : sorted) {
    const int64_t a = part[static_cast<size_t>(edge.smaller)];
    const int64_t b = part[static_cast<size_t>(edge.larger)];
    if (a == b) continue;
    forest.push_back(edge);
    std::replace(part.begin(), part.end(), b, a);
  }
  return forest;
}

// rows x rows: the least largest step.
inline std::vector<float> widths(const std::vector<Edge>& edges, int64_t rows) {
  std::vector<float> width(static_cast<size_t>(rows * rows), std::numeric_limits<float>::infinity());
  const auto at = [&](int64_t a, int64_t b) -> float& { return width[static_cast<size_t>(a * rows + b)]; };
  for (int64_t i = 0; i < rows; ++i) at(i, i) = 0;
  for (const Edge& edge : edges) {
    at(edge.smaller, edge.larger) = at(edge.larger, edge.smaller) = std::min(at(edge.smaller, edge.larger), edge.weight);
  }
  for (int64_t by = 0; by < rows; ++by) {
    for (int64_t a = 0; a < rows; ++a) {
      for (int64_t b = 0; b < rows; ++b) at(a, b) = std::min(at(a, b), std::max(at(a, by), at(by, b)));
    }
  }
  return width;
}

// Over edges up to `width`; of the paths with the fewest steps the first in the order of rows.
inline std::vector<int64_t> path(const std::vector<Edge>& edges, int64_t rows, int64_t a, int64_t b, float width) {
  std::vector<std::vector<int64_t>> neighbors(static_cast<size_t>(rows));
  for (const Edge& edge : edges) {
    if (edge.weight > width) continue;
    neighbors[static_cast<size_t>(edge.smaller)].push_back(edge.larger);
    neighbors[static_cast<size_t>(edge.larger)].push_back(edge.smaller);
  }
  std::vector<int64_t> to_b(static_cast<size_t>(rows), -1);
  std::deque<int64_t> queue{b};
  to_b[static_cast<size_t>(b)] = 0;
  for (; !queue.empty(); queue.pop_front()) {
    for (const int64_t row : neighbors[static_cast<size_t>(queue.front())]) {
      if (to_b[static_cast<size_t>(row)] >= 0) continue;
      to_b[static_cast<size_t>(row)] = to_b[static_cast<size_t>(queue.front())] + 1;
      queue.push_back(row);
    }
  }
  if (to_b[static_cast<size_t>(a)] < 0) return {};
  std::vector<int64_t> path{a};
  while (path.back() != b) {
    int64_t next = rows;
    for (const int64_t row : neighbors[static_cast<size_t>(path.back())]) {
      if (to_b[static_cast<size_t>(row)] + 1 == to_b[static_cast<size_t>(path.back())]) next = std::min(next, row);
    }
    path.push_back(next);
  }
  return path;
}

// The forest's only path.
inline std::vector<int64_t> forest_path(const std::vector<Edge>& forest, int64_t rows, int64_t a, int64_t b) {
  return path(forest, rows, a, b, std::numeric_limits<float>::infinity());
}

}  // namespace kith::reference
