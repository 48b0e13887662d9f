#include <kith/knn_graph.hpp>

#include <kith/error.hpp>
#include <kith/knn.hpp>

#include "core/name_table.hpp"
#include "exact/knn_checks.hpp"
#include "exact/search_limit.hpp"
#include "graph/exact_graph.hpp"
#include "graph/graph_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace kith {
namespace {

constexpr NameTable<GraphMethod, 2> kMethods{{{{GraphMethod::automatic, "auto"}, {GraphMethod::exact, "exact"}}}};

}  // namespace

std::string_view name_of(GraphMethod method) { return kMethods.name(method); }
GraphMethod parse_graph_method(std::string_view name) { return kMethods.parse(name, "graph method"); }

void KnnGraphParams::validate() const {
  KnnParams{k, metric}.validate();
  if (name_of(method) == "?") throw InvalidArgument(fmt::format("graph method {} is none", static_cast<int>(method)));
}

KnnGraph knn_graph(const MatrixView& x, const KnnGraphParams& params, const Resources& resources) {
  params.validate();
  check_graph_size(x.rows(), params.k);
  const SearchShape shape = check_search(RowsInfo(x), RowsInfo(x), params.metric);
  const SearchWish wish{.k = params.k, .without_self = true};
  return naming_the_limit({shape, wish, RowFilter(), neighbors_bytes(x.rows(), params.k)}, resources, [&] {
    KnnGraph graph;  // what a search finds need not be validated
    graph.neighbors_ = Neighbors(x.rows(), params.k, resources);
    graph.metric_ = params.metric;
    knn_graph(x, graph.neighbors_.view(), params, resources);
    return graph;
  });
}

void knn_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
               const Resources& resources) {
  params.validate();
  exact_graph(x, out, params, resources);
}

KnnGraph::KnnGraph(Neighbors neighbors, Metric metric, const Resources& resources)
    : neighbors_(std::move(neighbors)), metric_(metric) {
  validate(resources);
}

void KnnGraph::validate(const Resources& resources) const { check_graph_ids(ids(), rows(), k(), resources); }

CsrMatrix KnnGraph::to_csr(const Resources& resources) const {
  int64_t entries = 0;
  for (int64_t i = 0; i < rows() * k(); ++i) entries += ids()[i] >= 0;
  CsrMatrix matrix(rows(), entries, resources);
  std::vector<std::pair<int64_t, float>> row;
  int64_t at = 0;
  matrix.offsets()[0] = 0;
  for (int64_t i = 0; i < rows(); ++i) {
    row.clear();
    for (int64_t j = 0; j < k() && ids(i)[j] >= 0; ++j) row.emplace_back(ids(i)[j], distances(i)[j]);
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
  if (larger_is_nearer(metric_)) {
    throw InvalidArgument(
        fmt::format("{} is no distance, and UMAP wants one; build the graph with cosine or l2", name_of(metric_)));
  }
  Neighbors result(rows(), k() + 1, resources);
  const NeighborsView out = result.view();
  for (int64_t i = 0; i < rows(); ++i) {
    if (ids(i)[k() - 1] < 0) {
      throw InvalidArgument(
          fmt::format("row {} has fewer than k = {} neighbours; UMAP wants a full graph: lower k", i, k()));
    }
    out.ids[i * out.k] = i;
    out.distances[i * out.k] = 0.0f;
    std::copy_n(ids(i), k(), out.ids + i * out.k + 1);
    std::copy_n(distances(i), k(), out.distances + i * out.k + 1);
  }
  return result;
}

}  // namespace kith
