// Exact search and k-NN graphs by a metric of your own, compiled in your source file.
//
// A metric defines how a distance is accumulated over the columns; smaller is nearer:
//
//   struct Canberra {
//     float init() const { return 0; }
//     float step(float sum, float q, float x) const {
//       const float size = std::abs(q) + std::abs(x);
//       return size == 0 ? sum : sum + std::abs(q - x) / size;
//     }
//     float finish(float sum) const { return sum; }
//   };
//   kith::Neighbors found = kith::knn_by(Canberra{}, queries, base, {.k = 10});
//
// Values of every dtype are passed as f32, columns in ascending order, so a distance is the same in every run and for
// any number of threads. Sixteen rows are processed side by side, which compilers vectorise unless step() has branches
// that they cannot remove. init, step and finish are called from several threads at once.
//
// Graphs are built by NN-Descent, which compares few pairs. It needs a symmetric metric that says so by `static
// constexpr bool symmetric = true;`, which is checked on some pairs:
//
//   kith::CustomGraph graph = kith::knn_graph_by(Canberra{}, x, {.k = 15, .recall = 0.99});
//
// Inputs and outputs are in host memory, and the CPU does the work; kith/custom_metric.cuh is for GPUs. Cost of a
// search: every pair of a query and a row. Memory: the k best of each query, and a few rows per thread.
#pragma once

#include <kith/export.hpp>
#include <kith/graph_report.hpp>
#include <kith/knn_graph.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/view.hpp>

#include <concepts>
#include <cstdint>
#include <optional>

namespace kith {

template <typename M>
concept AccumulatedMetric = requires(const M& metric, float value) {
  { metric.init() } -> std::convertible_to<float>;
  { metric.step(value, value, value) } -> std::convertible_to<float>;
  { metric.finish(value) } -> std::convertible_to<float>;
};

template <typename M>
concept SymmetricMetric = AccumulatedMetric<M> && M::symmetric;

// As in KnnGraphParams for nn_descent, which starts from random neighbours here.
struct CustomGraphParams {
  int64_t k = 15;
  double recall = 0.99;  // below 1
  uint64_t seed = 0;
  std::optional<int64_t> samples = {};
  std::optional<int64_t> list_length = {};
  std::optional<int64_t> iterations = {};
  std::optional<double> delta = {};
  GraphUpdate update = GraphUpdate::selective;
  bool check_finite = true;  // refuse NaN and infinities, naming the row; a NaN distance comes last

  KITH_EXPORT void validate() const;
};

// For every row its k nearest other rows, by (distance, row), and how they were found.
struct CustomGraph {
  Neighbors neighbors;
  GraphReport report;
};

struct CustomKnnParams {
  int64_t k = 10;
  bool check_finite = true;  // refuse NaN and infinities, naming the row; a NaN distance comes last
  RowFilter filter = {};     // the rows that may be found; default: all
};

namespace custom {

inline constexpr int64_t kPanelRows = 16;

// Computes the distances of a query to the rows of a panel, where column c of row i is at c * kPanelRows + i.
struct PanelMetric {
  const void* metric = nullptr;
  void (*distances)(const void* metric, const float* query, const float* panel, int64_t cols, float* out) = nullptr;
};

template <AccumulatedMetric M>
void panel_distances(const void* metric, const float* query, const float* panel, int64_t cols, float* out) {
  const M& mine = *static_cast<const M*>(metric);
  float sums[kPanelRows];
  for (float& sum : sums) sum = mine.init();
  for (int64_t c = 0; c < cols; ++c) {
    const float q = query[c];
    for (int64_t i = 0; i < kPanelRows; ++i) sums[i] = mine.step(sums[i], q, panel[c * kPanelRows + i]);
  }
  for (int64_t i = 0; i < kPanelRows; ++i) out[i] = mine.finish(sums[i]);
}

KITH_EXPORT Neighbors knn(const PanelMetric& metric, const MatrixView& queries, const MatrixView& base,
                          const CustomKnnParams& params, const Resources& resources);
KITH_EXPORT CustomGraph knn_graph(const PanelMetric& metric, const MatrixView& x, const CustomGraphParams& params,
                                  const Resources& resources);

}  // namespace custom

template <AccumulatedMetric M>
Neighbors knn_by(const M& metric, const MatrixView& queries, const MatrixView& base, const CustomKnnParams& params = {},
                 const Resources& resources = Resources()) {
  return custom::knn({&metric, &custom::panel_distances<M>}, queries, base, params, resources);
}

// The same bytes for any number of threads and any memory limit. If a working list has room for all other rows, all
// pairs are compared. InvalidArgument that names two rows if the metric turns out not to be symmetric.
template <SymmetricMetric M>
CustomGraph knn_graph_by(const M& metric, const MatrixView& x, const CustomGraphParams& params = {},
                         const Resources& resources = Resources()) {
  return custom::knn_graph({&metric, &custom::panel_distances<M>}, x, params, resources);
}

}  // namespace kith
