// A row and a centre of a SettleTask: where they lie, and what their canonical sum becomes.
#pragma once

#include "core/ordered_key.hpp"
#include "kernels/assign/settle_task_cuda.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/pair_sums_cuda.hpp"

#include <cstdint>

namespace kith {

template <bool kProduct>
constexpr KeyKind pair_step() {
  return kProduct ? KeyKind::inner_product : KeyKind::squared_l2;
}

template <typename X>
__device__ Alignment pair_alignment(const SettleTask& task) {
  return {rows_aligned(static_cast<const X*>(task.rows.data), task.rows.stride), rows_aligned(task.centres, task.cols)};
}

template <typename X>
__device__ const X* pair_row(const SettleTask& task, int64_t row) {
  return static_cast<const X*>(task.rows.data) + row * task.rows.stride;
}

// The key of a canonical sum. Roots make some keys equal that are not, so a search by l2 compares roots.
template <bool kProduct>
__device__ float pair_key(const SettleTask& task, double sum) {
  if (kProduct) return canonical_key<KeyKind::inner_product>(sum, 0, 0);
  return task.kind == KeyKind::l2 ? canonical_key<KeyKind::l2>(sum, 0, 0)
                                  : canonical_key<KeyKind::squared_l2>(sum, 0, 0);
}

template <bool kProduct>
__device__ uint64_t packed_pair(const SettleTask& task, double sum, uint32_t centre) {
  return pack_neighbor(ordered_key(pair_key<kProduct>(task, sum)), centre);
}

__device__ inline void take_nearest(const SettleTask& task, int64_t row, uint64_t nearest) {
  task.labels[row] = static_cast<int32_t>(row_of(nearest));
  task.keys[row] = key_of_ordered(ordered_of(nearest));
}

}  // namespace kith
