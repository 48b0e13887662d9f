// A graph as sparse matrices of distances, and what can be counted in it.
//
// Cost: passes over the edges on all threads; turning them round is one scattered pass. Memory: that of the result, and
// for symmetric() and mutual() of both directions beside it, 24 bytes for each edge.
#include <kith/error.hpp>
#include <kith/knn_graph.hpp>

#include "core/host_array.hpp"
#include "graph/handle/both_ways.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/handle/row_sets.hpp"
#include "graph/lists/counted_work.hpp"
#include "graph/lists/row_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {
namespace {

// make(graph) of the graph on the host, which is sure to have rows as ids: arrays of others may have been changed.
template <typename Make>
auto made_of(const KnnGraph& graph, std::string_view what, const Resources& resources, const Make& make) {
  check_graph(graph, resources);
  return within_limits(what, resources,
                       [&](const Resources& used) { return make(graph_in(MemorySpace::host(), graph, used), used); });
}

int64_t neighbors_of(const KnnGraph& graph, int64_t row) {
  return std::find(graph.ids(row), graph.ids(row) + graph.k(), -1) - graph.ids(row);
}

// Edges, and those whose way back is an edge too, where work is counted. Of a graph whose copy is counted as well, the
// most there can be.
struct EdgeCounts {
  int64_t all = 0;
  int64_t both_ways = 0;

  EdgeCounts(const KnnGraph& graph, const Resources& resources) {
    if (is_counted_only(graph.ids())) {
      all = both_ways = graph.rows() * graph.k();
      return;
    }
    std::atomic<int64_t> edges{0};
    std::atomic<int64_t> mutual{0};
    for_row_blocks("count edges", graph.rows(), resources, [&](int64_t first, int64_t end) {
      int64_t back = 0;
      int64_t here = 0;
      for (int64_t i = first; i < end; ++i) {
        const int64_t count = neighbors_of(graph, i);
        here += count;
        for (int64_t j = 0; j < count; ++j) {
          const int64_t* const ids = graph.ids(graph.ids(i)[j]);
          back += std::find(ids, ids + graph.k(), i) != ids + graph.k() ? 1 : 0;
        }
      }
      edges += here;
      mutual += back;
    });
    all = edges;
    both_ways = mutual;
  }
};

// A matrix of rows with so many entries as `counts`, which become where they end.
CsrMatrix sized(HostArray<int64_t>& counts, const Resources& resources) {
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
  if (only_counts(resources)) return CsrMatrix(graph.rows(), EdgeCounts(graph, resources).all, resources);
  for_row_blocks("count edges", graph.rows(), resources, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) counts[i] = neighbors_of(graph, i);
  });
  CsrMatrix matrix = sized(counts, resources);
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
  std::fill_n(counts, graph.rows(), 0);
  each_edge(graph, resources, [&](int64_t, int64_t to, float) {
    std::atomic_ref<int64_t>(counts[to]).fetch_add(1, std::memory_order_relaxed);
  });
}

CsrMatrix turned(const KnnGraph& graph, const Resources& resources) {
  HostArray<int64_t> ends(graph.rows(), "the matrix's rows", resources);
  if (only_counts(resources)) return CsrMatrix(graph.rows(), EdgeCounts(graph, resources).all, resources);
  count_edges_to(graph, ends.data(), resources);
  CsrMatrix matrix = sized(ends, resources);
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

}  // namespace

CsrMatrix both_ways(const KnnGraph& graph, bool in_both, const Resources& resources) {
  const CsrMatrix there = csr_of(graph, resources);
  const CsrMatrix back = turned(graph, resources);
  const bool larger = larger_is_nearer(graph.metric());
  HostArray<int64_t> counts(graph.rows(), "the matrix's rows", resources);
  if (only_counts(resources)) {
    const EdgeCounts edges(graph, resources);
    return CsrMatrix(graph.rows(), in_both ? edges.both_ways : 2 * edges.all - edges.both_ways, resources);
  }
  for_row_blocks("count edges", graph.rows(), resources, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      counts[i] = 0;
      each_of_both(there, back, i, larger, [&](int64_t, float, bool both) { counts[i] += both || !in_both; });
    }
  });
  CsrMatrix matrix = sized(counts, resources);
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

HostBuffer KnnGraph::in_degrees(const Resources& resources) const {
  return made_of(*this, "the rows' in-degrees", resources, [](const KnnGraph& graph, const Resources& used) {
    HostBuffer counts(array_bytes<int64_t>(graph.rows()), "the rows' in-degrees", used);
    if (!only_counts(used)) count_edges_to(graph, counts.as<int64_t>(), used);
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
    if (!only_counts(used)) each_edge(graph, used, join);
    return sets.labels(used);
  });
}

}  // namespace kith
