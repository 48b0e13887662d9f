// A graph as sparse matrices of distances or weights, as UMAP takes it, and what can be counted in it.
//
// Cost: passes over the edges on all threads; turning them round is one scattered pass. Memory: that of the result, and
// for symmetric() and mutual() of both directions beside it, 24 bytes for each edge.
#include <kith/error.hpp>
#include <kith/knn_graph.hpp>

#include "core/host_array.hpp"
#include "core/within_limits.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/handle/row_sets.hpp"
#include "rows/row_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {
namespace {

// make(graph) of the graph on the host, which is sure to have rows as ids: arrays of others may have been changed.
template <typename Make>
auto made_of(const KnnGraph& graph, std::string_view what, const Resources& resources, const Make& make) {
  const bool here = graph.space().host_readable();
  if (here) check_graph(graph, resources);  // before its edges are counted
  return within_limits(what, resources, [&](const Resources& used) {
    if (!here) check_graph(graph, used);
    return make(graph_in(MemorySpace::host(), graph, used), used);
  });
}

int64_t neighbors_of(const KnnGraph& graph, int64_t row) {
  return std::find(graph.ids(row), graph.ids(row) + graph.k(), -1) - graph.ids(row);
}

// Edges, those whose way back is an edge too, and edges and ways back together, where work is counted. Of a graph whose
// copy is counted as well, the most there can be.
struct EdgeCounts {
  int64_t all = 0;
  int64_t both_ways = 0;
  int64_t either_way = 0;

  EdgeCounts(const KnnGraph& graph, const Resources& resources) {
    if (is_counted_only(graph.ids())) {
      all = both_ways = graph.rows() * graph.k();
      either_way = 2 * all;
      return;
    }
    std::atomic<int64_t> edges{0};
    std::atomic<int64_t> mutual{0};
    const auto count_row = [&](int64_t row, int) {
      const int64_t count = neighbors_of(graph, row);
      edges.fetch_add(count, std::memory_order_relaxed);
      for (int64_t j = 0; j < count; ++j) {
        const int64_t* const ids = graph.ids(graph.ids(row)[j]);
        if (std::find(ids, ids + graph.k(), row) != ids + graph.k()) mutual.fetch_add(1, std::memory_order_relaxed);
      }
    };
    resources.pool().run(graph.rows(), count_row, [] {});  // the graph is there, though memory is only counted
    all = edges;
    both_ways = mutual;
    either_way = 2 * all - both_ways;
  }
};

// A matrix whose rows have `counts` entries; `counts` become the ends of the rows. `counted(edges)`: their total, for
// counting resources.
template <typename Counted>
CsrMatrix sized(HostArray<int64_t>& counts, const KnnGraph& graph, const Resources& resources, const Counted& counted) {
  if (counts_only(resources)) return CsrMatrix(graph.rows(), counted(EdgeCounts(graph, resources)), resources);
  int64_t entries = 0;
  for (int64_t& count : counts) entries = count += entries;
  CsrMatrix matrix(counts.size(), entries, resources);
  matrix.offsets()[0] = 0;
  std::copy(counts.begin(), counts.end(), matrix.offsets() + 1);
  return matrix;
}

void sort_rows(const CsrMatrix& matrix, const Resources& resources) {
  for_row_blocks("sort edges", matrix.rows(), resources, [&](int64_t first, int64_t end) {
    std::vector<std::pair<int64_t, float>> row;
    for (int64_t i = first; i < end; ++i) {
      row.clear();
      for (int64_t e = matrix.offsets()[i]; e < matrix.offsets()[i + 1]; ++e) {
        row.emplace_back(matrix.columns()[e], matrix.values()[e]);
      }
      std::sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (size_t e = 0; e < row.size(); ++e) {
        matrix.columns()[matrix.offsets()[i] + static_cast<int64_t>(e)] = row[e].first;
        matrix.values()[matrix.offsets()[i] + static_cast<int64_t>(e)] = row[e].second;
      }
    }
  });
}

CsrMatrix csr_of(const KnnGraph& graph, const Resources& resources) {
  HostArray<int64_t> counts(graph.rows(), "the matrix's rows", resources);
  for_row_blocks("count edges", graph.rows(), resources, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) counts[i] = neighbors_of(graph, i);
  });
  CsrMatrix matrix = sized(counts, graph, resources, [](const EdgeCounts& edges) { return edges.all; });
  for_row_blocks("copy edges", graph.rows(), resources, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      const int64_t count = matrix.offsets()[i + 1] - matrix.offsets()[i];
      std::copy_n(graph.ids(i), count, matrix.columns() + matrix.offsets()[i]);
      std::copy_n(graph.distances(i), count, matrix.values() + matrix.offsets()[i]);
    }
  });
  sort_rows(matrix, resources);
  return matrix;
}

template <typename Use>
void each_edge(const KnnGraph& graph, const Resources& resources, const Use& use) {
  for_row_blocks("turn edges", graph.rows(), resources, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      for (int64_t j = 0; j < graph.k() && graph.ids(i)[j] >= 0; ++j) use(i, graph.ids(i)[j], graph.distances(i)[j]);
    }
  });
}

void count_edges_to(const KnnGraph& graph, int64_t* counts, const Resources& resources) {
  for_row_blocks("turn edges", graph.rows(), resources,
                 [&](int64_t first, int64_t end) { std::fill(counts + first, counts + end, 0); });
  each_edge(graph, resources, [&](int64_t, int64_t to, float) {
    std::atomic_ref<int64_t>(counts[to]).fetch_add(1, std::memory_order_relaxed);
  });
}

CsrMatrix turned(const KnnGraph& graph, const Resources& resources) {
  HostArray<int64_t> ends(graph.rows(), "the matrix's rows", resources);
  count_edges_to(graph, ends.data(), resources);
  CsrMatrix matrix = sized(ends, graph, resources, [](const EdgeCounts& edges) { return edges.all; });
  each_edge(graph, resources, [&](int64_t from, int64_t to, float distance) {
    const int64_t place = std::atomic_ref<int64_t>(ends[to]).fetch_sub(1, std::memory_order_relaxed) - 1;
    matrix.columns()[place] = from;
    matrix.values()[place] = distance;
  });
  sort_rows(matrix, resources);  // in whichever order they came
  return matrix;
}

// The entries of a row in two matrices, in the order of columns. use(column, value, in both).
template <typename Use>
void each_of_both(const CsrMatrix& a, const CsrMatrix& b, int64_t row, bool larger_is_nearer, const Use& use) {
  int64_t i = a.offsets()[row];
  int64_t j = b.offsets()[row];
  while (i < a.offsets()[row + 1] || j < b.offsets()[row + 1]) {
    const int64_t left = i < a.offsets()[row + 1] ? a.columns()[i] : INT64_MAX;
    const int64_t right = j < b.offsets()[row + 1] ? b.columns()[j] : INT64_MAX;
    if (left != right) {
      use(std::min(left, right), left < right ? a.values()[i++] : b.values()[j++], false);
    } else {
      const auto [low, high] = std::minmax(a.values()[i++], b.values()[j++]);
      use(left, larger_is_nearer ? high : low, true);
    }
  }
}

// A graph's edges and their ways back as one matrix. `in_both`: those alone whose way back is an edge too.
CsrMatrix both_ways(const KnnGraph& graph, bool in_both, const Resources& resources) {
  const CsrMatrix there = csr_of(graph, resources);
  const CsrMatrix back = turned(graph, resources);
  const bool larger = larger_is_nearer(graph.metric());
  HostArray<int64_t> counts(graph.rows(), "the matrix's rows", resources);
  for_row_blocks("count edges", graph.rows(), resources, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      counts[i] = 0;
      each_of_both(there, back, i, larger, [&](int64_t, float, bool both) { counts[i] += both || !in_both; });
    }
  });
  CsrMatrix matrix = sized(counts, graph, resources,
                           [&](const EdgeCounts& edges) { return in_both ? edges.both_ways : edges.either_way; });
  for_row_blocks("join edges", graph.rows(), resources, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      int64_t at = matrix.offsets()[i];
      each_of_both(there, back, i, larger, [&](int64_t column, float value, bool both) {
        if (!both && in_both) return;
        matrix.columns()[at] = column;
        matrix.values()[at++] = value;
      });
    }
  });
  return matrix;
}

// The weights with which UMAP and scanpy join rows: 1 for the nearest neighbour, falling so that a row's weights sum to
// log2(k + 1), and of both directions the chance that either holds (a + b - a b). UMAP, McInnes et al. 2018,
// section 3.1, with umap-learn's constants, as n_neighbors = k + 1: UMAP counts a row among its neighbours.

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

CsrMatrix weighed(const KnnGraph& graph, const Resources& resources) {
  const int64_t rows = graph.rows();
  const int64_t k = graph.k();
  const HostArray<Fall> falls(rows, "how weights fall", resources);
  if (counts_only(resources)) return both_ways(graph, false, resources);
  check_full(graph, "connectivities");
  const double mean_of_all = rows == 0 ? 0 : mean_of(graph.distances(), rows * k, rows * (k + 1));
  for_row_blocks("weigh", rows, resources, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) falls[i] = fall_of(graph.distances(i), k, mean_of_all);
  });

  // An entry is there where either row has the other as neighbour. What one direction weighs follows from its row.
  CsrMatrix matrix = both_ways(graph, false, resources);
  const auto weight_from = [&](int64_t row, int64_t other) {
    const int64_t* const ids = graph.ids(row);
    const int64_t* const at = std::find(ids, ids + k, other);
    return at == ids + k ? 0.0f : falls[row].weight(graph.distances(row)[at - ids]);
  };
  for_row_blocks("weigh", rows, resources, [&](int64_t first, int64_t end) {
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

}  // namespace

CsrMatrix KnnGraph::to_csr(const Resources& resources) const {
  return made_of(*this, "a matrix of the graph", resources, csr_of);
}
CsrMatrix KnnGraph::reversed(const Resources& resources) const {
  return made_of(*this, "a matrix of the graph", resources, turned);
}
CsrMatrix KnnGraph::symmetric(const Resources& resources) const {
  return made_of(*this, "a matrix of the graph", resources,
                 [](const KnnGraph& graph, const Resources& used) { return both_ways(graph, false, used); });
}
CsrMatrix KnnGraph::mutual(const Resources& resources) const {
  return made_of(*this, "a matrix of the graph", resources,
                 [](const KnnGraph& graph, const Resources& used) { return both_ways(graph, true, used); });
}

CsrMatrix KnnGraph::connectivities(const Resources& resources) const {
  check_distance(metric_, "connectivities fall with one");
  return made_of(*this, "connectivities", resources, weighed);
}

Neighbors KnnGraph::to_umap(const Resources& resources) const {
  check_distance(metric_, "UMAP wants one");
  return made_of(*this, "UMAP's graph", resources, [](const KnnGraph& graph, const Resources& used) {
    const int64_t k = graph.k();
    Neighbors result(graph.rows(), k + 1, used);
    check_full(graph, "UMAP");
    const NeighborsView out = result.view();
    for_row_blocks("copy edges", graph.rows(), used, [&](int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
        out.ids[i * out.k] = i;
        out.distances[i * out.k] = 0.0f;
        std::copy_n(graph.ids(i), k, out.ids + i * out.k + 1);
        std::copy_n(graph.distances(i), k, out.distances + i * out.k + 1);
      }
    });
    return result;
  });
}

HostBuffer KnnGraph::in_degrees(const Resources& resources) const {
  return made_of(*this, "the rows' in-degrees", resources, [](const KnnGraph& graph, const Resources& used) {
    HostBuffer counts(array_bytes<int64_t>(graph.rows()), "the rows' in-degrees", used);
    count_edges_to(graph, counts.as<int64_t>(), used);
    return counts;
  });
}

RowLabels KnnGraph::components(const Resources& resources) const {
  check_row_count(rows_);
  return made_of(*this, "the graph's parts", resources, [](const KnnGraph& graph, const Resources& used) {
    const RowSets sets(graph.rows(), used);
    const auto join = [&](int64_t from, int64_t to, float) {
      sets.join(static_cast<uint32_t>(from), static_cast<uint32_t>(to));
    };
    each_edge(graph, used, join);
    return sets.labels(used);
  });
}

}  // namespace kith
