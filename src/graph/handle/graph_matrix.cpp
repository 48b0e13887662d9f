// A graph as sparse matrices of distances, and what can be counted in it.
//
// Cost: passes over the edges on all threads; turning them round is one scattered pass. Memory: that of the result, and
// for symmetric() and mutual() of both directions beside it, 24 bytes for each edge.
#include <kith/error.hpp>
#include <kith/knn_graph.hpp>

#include "core/host_array.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/handle/row_sets.hpp"
#include "graph/lists/row_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

namespace kith {
namespace {

// On the host, and sure to have rows as ids: arrays of others may have been changed.
KnnGraph checked(const KnnGraph& graph, const Resources& resources) {
  const KnnGraph here = graph.to(MemorySpace::host(), resources);
  check_graph(here, resources);
  return here;
}

int64_t neighbors_of(const KnnGraph& graph, int64_t row) {
  return std::find(graph.ids(row), graph.ids(row) + graph.k(), -1) - graph.ids(row);
}

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

CsrMatrix both_ways(const KnnGraph& given, bool in_both, const Resources& resources) {
  const KnnGraph graph = checked(given, resources);
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

}  // namespace

CsrMatrix KnnGraph::to_csr(const Resources& resources) const { return csr_of(checked(*this, resources), resources); }
CsrMatrix KnnGraph::reversed(const Resources& resources) const { return turned(checked(*this, resources), resources); }
CsrMatrix KnnGraph::symmetric(const Resources& resources) const { return both_ways(*this, false, resources); }
CsrMatrix KnnGraph::mutual(const Resources& resources) const { return both_ways(*this, true, resources); }

HostBuffer KnnGraph::in_degrees(const Resources& resources) const {
  const KnnGraph graph = checked(*this, resources);
  HostBuffer counts(array_bytes<int64_t>(rows_), "the rows' in-degrees", resources);
  count_edges_to(graph, counts.as<int64_t>(), resources);
  return counts;
}

RowLabels KnnGraph::components(const Resources& resources) const {
  check_row_count(rows_);
  const KnnGraph graph = checked(*this, resources);
  const RowSets sets(rows_, resources);
  each_edge(graph, resources, [&](int64_t from, int64_t to, float) {
    sets.join(static_cast<uint32_t>(from), static_cast<uint32_t>(to));
  });
  return sets.labels(resources);
}

}  // namespace kith
