// A graph as matrices for others: sparse ones of distances, and what UMAP takes.
#include <kith/error.hpp>
#include <kith/knn_graph.hpp>

#include "graph/graph_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace kith {

CsrMatrix KnnGraph::to_csr(const Resources& resources) const {
  const KnnGraph here = to(MemorySpace::host(), resources);
  check_graph(here, resources);  // arrays of others may have been changed
  int64_t entries = 0;
  for (int64_t i = 0; i < rows_ * k_; ++i) entries += here.ids()[i] >= 0;
  CsrMatrix matrix(rows_, entries, resources);
  std::vector<std::pair<int64_t, float>> row;
  int64_t at = 0;
  matrix.offsets()[0] = 0;
  for (int64_t i = 0; i < rows_; ++i) {
    row.clear();
    for (int64_t j = 0; j < k_ && here.ids(i)[j] >= 0; ++j) row.emplace_back(here.ids(i)[j], here.distances(i)[j]);
    std::sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [column, value] : row) {
      matrix.columns()[at] = column;
      matrix.values()[at] = value;
      ++at;
    }
    matrix.offsets()[i + 1] = at;
  }
  return matrix;
}

Neighbors KnnGraph::to_umap(const Resources& resources) const {
  check_distance(metric_, "UMAP wants one");
  const KnnGraph here = to(MemorySpace::host(), resources);
  check_graph(here, resources);
  Neighbors result(rows_, k_ + 1, resources);
  const NeighborsView out = result.view();
  for (int64_t i = 0; i < rows_; ++i) {
    if (here.ids(i)[k_ - 1] < 0) {
      throw InvalidArgument(
          fmt::format("row {} has fewer than k = {} neighbours; UMAP wants a full graph: lower k", i, k_));
    }
    out.ids[i * out.k] = i;
    out.distances[i * out.k] = 0.0f;
    std::copy_n(here.ids(i), k_, out.ids + i * out.k + 1);
    std::copy_n(here.distances(i), k_, out.distances + i * out.k + 1);
  }
  return result;
}

}  // namespace kith
