#include "graph/search/graph/walk_cells.hpp"

#include <kith/knn.hpp>
#include <kith/matrix_buffer.hpp>

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace kith {
namespace {

constexpr uint64_t kCentreStream = 0x63656E74;  // of random numbers

bool has_means(const WalkRows& rows) {
  if (rows.kind == WalkKind::squares) return true;
  return rows.kind == WalkKind::canonical && rows.key == KeyKind::squared_l2 && rows.values.dtype() == DType::f32;
}

// Calls work(i) for so many rows, on all threads of the CPU.
template <typename Work>
void for_rows(int64_t count, const Resources& resources, const Work& work) {
  constexpr int64_t kTask = 8192;
  const int64_t tasks = divide_up(count, kTask);
  ProgressMeter meter("cells", tasks, resources);
  parallel_for(tasks, meter, resources, [&](int64_t task, int) {
    for (int64_t i = task * kTask; i < std::min((task + 1) * kTask, count); ++i) work(i);
  });
}

}  // namespace

Metric metric_of(const WalkRows& rows) {
  if (rows.kind == WalkKind::squares) return Metric::sqeuclidean;
  if (rows.kind == WalkKind::products) return Metric::inner_product;
  switch (rows.key) {
    case KeyKind::squared_l2: return Metric::sqeuclidean;
    case KeyKind::inner_product: return Metric::inner_product;
    case KeyKind::cosine: return Metric::cosine;
    case KeyKind::l1: return Metric::l1;
    case KeyKind::linf: return Metric::linf;
    case KeyKind::chi_square: return Metric::chi_square;
    case KeyKind::hamming: return Metric::hamming;
    default: return Metric::l2;
  }
}

WalkCells::WalkCells(const WalkRows& rows, uint64_t seed, const Resources& resources)
    : rows_(rows),
      count_(std::clamp<int64_t>(rows.count() / kRowsPerWalkCell, 1, kMostWalkCells)),
      centres_(count_ * rows.row_bytes(), "the centres of a graph's cells", resources),
      labels_(rows.count(), "the cells of rows", resources) {
  learn(seed, resources);
  assign(resources);
}

WalkRows WalkCells::centres() const {
  const MatrixView& values = rows_.values;
  return rows_.with({centres_.data(), values.dtype(), {count_, values.cols(), values.row_stride()}});
}

void WalkCells::learn(uint64_t seed, const Resources& resources) {
  const MatrixView& values = rows_.values;
  const int64_t wanted = has_means(rows_) ? count_ * kSampleRowsPerCell : count_;
  const std::vector<uint32_t> drawn = drawn_rows(CounterRng(seed, kCentreStream), values.rows(), wanted, resources);
  const auto row_bytes = static_cast<size_t>(values.cols() * size_of(values.dtype()));
  std::fill(centres_.begin(), centres_.end(), std::byte{0});
  if (!has_means(rows_)) {
    for (int64_t i = 0; i < count_ && !counts_only(resources); ++i) {
      std::memcpy(centres_.data() + i * rows_.row_bytes(), values.row(drawn[static_cast<size_t>(i)]), row_bytes);
    }
    return;
  }
  MatrixBuffer sample(values.dtype(), static_cast<int64_t>(drawn.size()), values.cols(), "a sample for cells",
                      resources);
  const CellsParams training{.cells = count_, .seed = seed};
  if (counts_only(resources)) {
    return count_call(resources, [&](const Resources& used) { (void)learn_cells(sample.view(), training, used); });
  }
  for_rows(sample.rows(), resources, [&](int64_t i) {
    std::memcpy(sample.mutable_view().row(i), values.row(drawn[static_cast<size_t>(i)]), row_bytes);
  });
  const KMeansSnapshot cells = learn_cells(sample.view(), training, resources).snapshot();
  for (int64_t i = 0; i < count_; ++i) {
    const auto* const from = typed_row<float>(cells.centres, i);
    std::byte* const to = centres_.data() + i * rows_.row_bytes();
    if (values.dtype() == DType::f32) {
      std::memcpy(to, from, row_bytes);
      continue;
    }
    for (int64_t c = 0; c < values.cols(); ++c) {
      const float level = std::clamp(std::nearbyint(from[c]), -128.0F, 127.0F);
      reinterpret_cast<int8_t*>(to)[c] = static_cast<int8_t>(level);
    }
  }
}

void WalkCells::assign(const Resources& resources) {
  Neighbors nearest(rows_.count(), 1, resources);
  const KnnParams params{.k = 1, .metric = metric_of(rows_), .check_finite = false};
  call_or_count(resources,
                [&](const Resources& used) { knn(rows_.values, centres().values, nearest.view(), params, used); });
  if (counts_only(resources)) return;
  for_rows(rows_.count(), resources, [&](int64_t i) { labels_[i] = static_cast<uint32_t>(*nearest.ids(i)); });
}

}  // namespace kith
