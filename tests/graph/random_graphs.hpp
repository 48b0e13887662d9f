// Graphs for tests: whatever rows, neighbours and distances, with ties and parts as asked.
#pragma once

#include <kith/knn_graph.hpp>

#include "core/random.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace kith {

struct GraphShape {
  int64_t rows;
  int64_t k;
  int64_t parts = 1;            // rows of different parts have no edges: row i is of part i % parts
  uint32_t distances = 1 << 20;  // how many different ones there are
  bool two_ways = false;         // whether an edge and the one back may differ in their distance
};

// For graphs that are made, and not what is tested.
inline Resources for_made_graphs() {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = 1;
  return Resources(options);
}

// Rows have 0 to k neighbours.
inline KnnGraph random_graph(const GraphShape& shape, uint64_t seed, Metric metric = Metric::l2) {
  const CounterRng draws(seed, 0);
  const CounterRng lengths(seed, 1);
  Neighbors neighbors(shape.rows, shape.k, for_made_graphs());
  const NeighborsView out = neighbors.view();
  std::fill_n(out.ids, shape.rows * shape.k, -1);
  std::fill_n(out.distances, shape.rows * shape.k, std::numeric_limits<float>::infinity());
  for (int64_t i = 0; i < shape.rows; ++i) {
    std::vector<std::pair<float, int64_t>> row;
    for (int64_t j = 0; j < shape.k; ++j) {
      const uint64_t at = static_cast<uint64_t>(i * shape.k + j);
      const auto other = static_cast<int64_t>(draws.below(at, static_cast<uint32_t>(shape.rows)));
      if (other == i || other % shape.parts != i % shape.parts) continue;
      if (std::any_of(row.begin(), row.end(), [&](const auto& entry) { return entry.second == other; })) continue;
      const int64_t first = shape.two_ways ? i : std::min(i, other);
      const int64_t second = shape.two_ways ? other : std::max(i, other);
      const uint32_t drawn = lengths.below(static_cast<uint64_t>(first * shape.rows + second), shape.distances);
      row.emplace_back(static_cast<float>(drawn), other);
    }
    std::sort(row.begin(), row.end());
    if (larger_is_nearer(metric)) std::reverse(row.begin(), row.end());
    for (size_t j = 0; j < row.size(); ++j) {
      out.distances[i * shape.k + static_cast<int64_t>(j)] = row[j].first;
      out.ids[i * shape.k + static_cast<int64_t>(j)] = row[j].second;
    }
  }
  return {std::move(neighbors), metric, for_made_graphs()};
}

// Row i has the neighbour i + 1, at the distance that `distance` tells.
template <typename Distance>
KnnGraph chain(int64_t rows, const Distance& distance) {
  Neighbors neighbors(rows, 1, for_made_graphs());
  for (int64_t i = 0; i < rows; ++i) {
    neighbors.view().ids[i] = i + 1 < rows ? i + 1 : -1;
    neighbors.view().distances[i] = i + 1 < rows ? static_cast<float>(distance(i)) : 0.0f;
  }
  return {std::move(neighbors), Metric::l2, for_made_graphs()};
}

}  // namespace kith
