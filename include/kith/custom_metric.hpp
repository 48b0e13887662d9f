// Exact search by a metric of your own, compiled in your file.
//
// A metric says how a distance is accumulated over the columns; smaller is nearer:
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
// Values of every dtype come as f32, columns in ascending order, so a distance is the same in every run and for any
// number of threads. Sixteen rows go side by side, which a compiler turns into vector instructions where step() has no
// branches that it cannot. init, step and finish are called from several threads at once.
//
// Host inputs and outputs, on the CPU; kith/custom_metric.cuh does the same on a GPU. Cost: every pair of a query and a
// row. Memory: the k best of each query, and a few rows for each thread.
#pragma once

#include <kith/export.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/view.hpp>

#include <concepts>
#include <cstdint>

namespace kith {

template <typename M>
concept AccumulatedMetric = requires(const M& metric, float value) {
  { metric.init() } -> std::convertible_to<float>;
  { metric.step(value, value, value) } -> std::convertible_to<float>;
  { metric.finish(value) } -> std::convertible_to<float>;
};

struct CustomKnnParams {
  int64_t k = 10;
  bool check_finite = true;  // refuse NaN and infinities, naming the row; a NaN distance comes last
  RowFilter filter = {};     // the rows that may be found; without one, all
};

namespace custom {

inline constexpr int64_t kPanelRows = 16;

// The distances of a query to the rows of a panel: column c of row i lies at c * kPanelRows + i.
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

}  // namespace custom

template <AccumulatedMetric M>
Neighbors knn_by(const M& metric, const MatrixView& queries, const MatrixView& base, const CustomKnnParams& params = {},
                 const Resources& resources = Resources()) {
  return custom::knn({&metric, &custom::panel_distances<M>}, queries, base, params, resources);
}

}  // namespace kith
