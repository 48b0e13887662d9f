// The weights with which UMAP and scanpy join rows: 1 for the nearest neighbour, falling so that a row's weights sum to
// log2(k + 1), and of both directions the chance that either holds (a + b - a b). UMAP, McInnes et al. 2018, section 3.1,
// with umap-learn's constants, as n_neighbors = k + 1: UMAP counts a row among its neighbours.
#include <kith/error.hpp>
#include <kith/knn_graph.hpp>

#include "core/host_array.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/lists/row_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr int kHalvings = 64;
constexpr double kTolerance = 1e-5;
constexpr double kSmallestScale = 1e-3;  // of the mean distance

double mean_of(const float* distances, int64_t count, int64_t divisor) {
  double sum = 0;
  for (int64_t j = 0; j < count; ++j) sum += static_cast<double>(distances[j]);
  return sum / static_cast<double>(divisor);
}

// How a row's distances become weights.
struct Fall {
  double nearest = 0;  // the first distance that is not 0
  double scale = 1;

  float weight(float distance) const {
    const double beyond = static_cast<double>(distance) - nearest;
    return beyond <= 0 || scale == 0 ? 1.0f : static_cast<float>(std::exp(-beyond / scale));
  }
};

Fall fall_of(const float* distances, int64_t k, double mean_of_all) {
  Fall fall;
  const float* const first = std::find_if(distances, distances + k, [](float d) { return d > 0; });
  if (first != distances + k) fall.nearest = static_cast<double>(*first);
  const double wanted = std::log2(static_cast<double>(k + 1));
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kHalvings; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < k; ++j) {
      const double beyond = static_cast<double>(distances[j]) - fall.nearest;
      sum += beyond > 0 ? std::exp(-beyond / fall.scale) : 1;
    }
    if (std::abs(sum - wanted) < kTolerance) break;
    (sum > wanted ? high : low) = fall.scale;
    fall.scale = std::isinf(high) ? fall.scale * 2 : (low + high) / 2;
  }
  const double mean = fall.nearest > 0 ? mean_of(distances, k, k + 1) : mean_of_all;  // with the row itself at 0
  fall.scale = std::max(fall.scale, kSmallestScale * mean);
  return fall;
}

}  // namespace

CsrMatrix KnnGraph::connectivities(const Resources& resources) const {
  check_distance(metric_, "connectivities fall with one");
  const KnnGraph here = to(MemorySpace::host(), resources);
  check_graph(here, resources);
  check_full(here, "connectivities");
  const double mean_of_all = rows_ == 0 ? 0 : mean_of(here.distances(), rows_ * k_, rows_ * (k_ + 1));
  const HostArray<Fall> falls(rows_, "how weights fall", resources);
  for_row_blocks("weigh", rows_, resources, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) falls[i] = fall_of(here.distances(i), k_, mean_of_all);
  });

  // An entry is there where either row has the other as neighbour. What one direction weighs follows from its row.
  CsrMatrix matrix = here.symmetric(resources);
  const auto weight_from = [&](int64_t row, int64_t other) {
    const int64_t* const ids = here.ids(row);
    const int64_t* const at = std::find(ids, ids + k_, other);
    return at == ids + k_ ? 0.0f : falls[row].weight(here.distances(row)[at - ids]);
  };
  for_row_blocks("weigh", rows_, resources, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      for (int64_t e = matrix.offsets()[i]; e < matrix.offsets()[i + 1]; ++e) {
        const float there = weight_from(i, matrix.columns()[e]);
        const float back = weight_from(matrix.columns()[e], i);
        matrix.values()[e] = there + back - there * back;
      }
    }
  });
  return matrix;
}

}  // namespace kith
