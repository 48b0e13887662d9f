// The core of the distance kernel for 1 to 16 columns: a thread holds one row in registers and goes over the queries of
// a tile, which lie in shared memory. Every lane of the canonical sum has at most one element, and the tree begins
// where there is something to add: with 2, 4, 8 or 16 lanes.
//
// Cost: rows are read once for each 16 queries, keys written once; 3 double-precision instructions for each pair and
// lane.
#pragma once

#include "cuda/device_core.hpp"
#include "kernels/distance/canonical_step_cuda.hpp"
#include "kernels/distance/distance_task.hpp"
#include "kernels/distance/stored_four_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kFewThreads = 128;  // and rows of a tile
inline constexpr int kFewQueries = 16;

template <int kLanes>
struct FewColumnsShared {
  double queries[kFewQueries][kLanes];
};

// The columns of vector i, scaled for cosine; zero where there are none.
template <int kLanes>
KITH_DEVICE_INLINE void load_few(const DistanceTask& task, const DeviceRowsView& rows, int64_t i,
                                 double (&values)[kLanes]) {
  const std::byte* const row = row_bytes_at(rows, i);
  const bool aligned = fours_aligned(rows);
  const double scale = row != nullptr && task.kind == KeyKind::cosine ? rows.inverse_norms[i] : 1.0;
  KITH_UNROLL
  for (int first = 0; first < kLanes; first += 4) {
    const bool none = row == nullptr || first >= task.cols;
    const StoredFour four = none ? StoredFour{} : fetch_four(row, rows.dtype, first, task.cols, aligned);
    double four_values[4];
    widen_four(four, rows.dtype, four_values);
    KITH_UNROLL
    for (int j = 0; j < 4 && first + j < kLanes; ++j) {
      values[first + j] = four_values[j] * scale;  // exact where nothing is scaled
    }
  }
}

// canonical_tree from lanes kApart apart on, in registers whatever their number is.
template <KeyKind kStep, int kApart, int kLanes>
KITH_DEVICE_INLINE void join_tree(double (&lanes)[kLanes]) {
  KITH_UNROLL
  for (int j = 0; j < kApart; ++j) lanes[j] = canonical_join<kStep>(lanes[j], lanes[j + kApart]);
  if constexpr (kApart > 1) join_tree<kStep, kApart / 2>(lanes);
}

template <KeyKind kStep, int kLanes, typename Block>
KITH_DEVICE_INLINE void few_columns_tile(const Block& block, FewColumnsShared<kLanes>& shared, const DistanceTask& task,
                                         int64_t first_query, int64_t first_row) {
  if (block.thread() < kFewQueries) {
    load_few(task, task.queries, first_query + block.thread(), shared.queries[block.thread()]);
  }
  block.sync();
  const int64_t row = first_row + block.thread();
  if (row >= task.rows.count) return;
  double x[kLanes];
  load_few(task, task.rows, row, x);
  const int64_t left = task.queries.count - first_query;
  const int count = left < kFewQueries ? static_cast<int>(left) : kFewQueries;
  uint32_t* place = task.keys + first_query * task.stride + row;
  for (int q = 0; q < count; ++q, place += task.stride) {
    double lanes[kLanes];
    KITH_UNROLL
    for (int j = 0; j < kLanes; ++j) lanes[j] = canonical_step_cuda<kStep>(0.0, shared.queries[q][j], x[j]);
    join_tree<kStep, kLanes / 2>(lanes);
    *place = written_key(task, key_of_sum(task, lanes[0], first_query + q, row));
  }
}

}  // namespace kith
