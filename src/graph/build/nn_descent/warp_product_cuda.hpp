// The products of a warp's join (small_join_cuda.cu) in its registers, and what they say of its samples.
//
// Lane 4 g + t holds of column group j the rows g and g + 8, and the columns 8 j + 2 t and 8 j + 2 t + 1: value i lies
// in the first or second of these rows, i / 2, and of these columns, i % 2.
#pragma once

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/ptx.hpp"
#include "graph/build/nn_descent/small_product_cuda.hpp"
#include "kernels/select/device_warp_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kColumnGroups = kSmallColumns / 8;
using WarpProducts = float[kColumnGroups][4];

// What a lane has of the products: its rows, half 0 and 1, and its columns.
struct WarpJoin : SmallJoin {
  __device__ int row(int half) const { return 8 * half + lane_index() / 4; }
  __device__ int column(int j, int side) const { return 8 * j + lane_index() % 4 * 2 + side; }
  __device__ bool has_row(int half) const { return row(half) < shape.rows; }
  __device__ bool has_column(int j, int side) const { return column(j, side) < shape.columns; }
  __device__ int row_sample(int half) const { return shape.first_row + row(half); }
  __device__ int column_sample(int j, int side) const { return shape.first_column + column(j, side); }
};

__device__ __forceinline__ void multiply_in_warp(const WarpJoin& join, WarpProducts& products) {
  constexpr int kAtOnce = 4;  // column groups whose operands are on their way together
  const JoinOperands& operands = join.block.task.operands;
  KITH_UNROLL
  for (int j = 0; j < kColumnGroups; ++j) {
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) products[j][i] = 0;
  }
#pragma unroll 1
  for (int64_t chunk = 0; chunk < operands.chunks; ++chunk) {
    uint4 a[2][2];
    KITH_UNROLL
    for (int half = 0; half < 2; ++half) join.row_unit(join.row(half)).load(chunk * kTileChunkBytes, a[half]);
    KITH_UNROLL
    for (int first = 0; first < kColumnGroups; first += kAtOnce) {
      if (8 * first >= join.shape.columns) break;
      uint4 b[kAtOnce][2];
      KITH_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        join.column_unit(8 * (first + n) + lane_index() / 4).load(chunk * kTileChunkBytes, b[n]);
      }
      KITH_UNROLL
      for (int n = 0; n < kAtOnce; ++n) multiply_units(a, b[n], products[first + n]);
    }
  }
  if (join.across) return;
  // A sample is not compared with itself: its product becomes that of what is farthest.
  KITH_UNROLL
  for (int half = 0; half < 2; ++half) {
    KITH_UNROLL
    for (int side = 0; side < 2; ++side) {
      if (join.row(half) == join.column(half, side)) products[half][2 * half + side] = -HUGE_VALF;
    }
  }
}

// The least values of the slots: of rows among the columns of each kind.
__device__ __forceinline__ void note_warp_rows(const WarpJoin& join, const WarpProducts& products) {
  float of_new[2];
  float of_old[2];
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) of_new[i] = of_old[i] = HUGE_VALF;
  KITH_UNROLL
  for (int j = 0; j < kColumnGroups; ++j) {
    if (8 * j >= join.shape.columns) break;
    KITH_UNROLL
    for (int side = 0; side < 2; ++side) {
      const int sample = join.column_sample(j, side);
      const Weighed mine = weighed(join.block, sample, join.has_column(j, side));
      const bool old = join.is_old(sample);
      KITH_UNROLL
      for (int i = 0; i < 2; ++i) {
        const float value = mine.value(products[j][2 * i + side]);
        of_old[i] = fminf(of_old[i], old ? value : HUGE_VALF);
        of_new[i] = fminf(of_new[i], old ? HUGE_VALF : value);
      }
    }
  }
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) {
    KITH_UNROLL
    for (int apart = 1; apart < 4; apart *= 2) {
      of_old[i] = fminf(of_old[i], __shfl_xor_sync(kAllLanes, of_old[i], apart));
      of_new[i] = fminf(of_new[i], __shfl_xor_sync(kAllLanes, of_new[i], apart));
    }
    if (lane_index() % 4 != 0 || !join.has_row(i)) continue;
    uint32_t* const least = join.block.memory.least() + join.row_sample(i);
    least[join.block.slots.apart] = least_key(of_old[i]);
    if (!join.across) least[0] = least_key(of_new[i]);
  }
}

// A lane and the one `apart` from it have the same values: each gets the least of both for one half of them.
template <int kHalf>
__device__ __forceinline__ void halve(float (&values)[2 * kHalf], int apart, float (&mine)[kHalf]) {
  const bool upper = (lane_index() & apart) != 0;
  KITH_UNROLL
  for (int i = 0; i < kHalf; ++i) {
    const float kept = upper ? values[kHalf + i] : values[i];
    const float given = upper ? values[i] : values[kHalf + i];
    mine[i] = fminf(kept, __shfl_xor_sync(kAllLanes, given, apart));
  }
}

// And of columns among all rows; of NEW columns beside NEW rows the rows say it.
__device__ __forceinline__ void note_warp_columns(const WarpJoin& join, const WarpProducts& products) {
  float values[2 * kColumnGroups];
  KITH_UNROLL
  for (int i = 0; i < 2 * kColumnGroups; ++i) values[i] = HUGE_VALF;
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) {
    const Weighed mine = weighed(join.block, join.row_sample(i), join.has_row(i));
    KITH_UNROLL
    for (int j = 0; j < kColumnGroups; ++j) {
      if (8 * j >= join.shape.columns) break;
      KITH_UNROLL
      for (int side = 0; side < 2; ++side) {
        values[2 * j + side] = fminf(values[2 * j + side], mine.value(products[j][2 * i + side]));
      }
    }
  }
  static_assert(kColumnGroups == 8);
  float eight[8];
  float four[4];
  float two[2];
  halve(values, 16, eight);
  halve(eight, 8, four);
  halve(four, 4, two);
  KITH_UNROLL
  for (int side = 0; side < 2; ++side) {  // of column group lane / 4
    const int column = 2 * lane_index() + side;
    const int sample = join.shape.first_column + column;
    if (column < join.shape.columns && join.is_old(sample)) {
      join.block.memory.least()[join.block.slots.old_slot(sample)] = least_key(two[side]);
    }
  }
}

// The pairs of `mask`, bit 4 j + i, for their rows or for their columns. NEW samples, who are rows and columns, meet
// where the row is the smaller.
__device__ inline void leave_masked(const WarpJoin& join, uint32_t mask, bool for_columns, int* count) {
  while (mask != 0) {
    const int bit = __ffs(static_cast<int>(mask)) - 1;
    mask &= mask - 1;
    const int half = bit / 2 % 2;
    const int row = join.row_sample(half);
    const int column = join.column_sample(bit / 4, bit % 2);
    if (!join.has_row(half) || (!join.across && row >= column)) continue;
    const JoinSlots& slots = join.block.slots;
    leave_small_pair(join, for_columns ? slots.slot_for_new(column) : slots.new_slot(row, column), for_columns ? row : column,
                     count);
  }
}

// What is not above the limits of its row or its column. A value that is no number stays.
__device__ __forceinline__ void leave_in_warp(const WarpJoin& join, const WarpProducts& products, int* count) {
  const JoinBlock& block = join.block;
  const float* const limits = block.memory.limits();
  uint32_t for_rows = 0;
  uint32_t for_columns = 0;
  Weighed of_rows[2];
  float new_limits[2];
  float old_limits[2];
  KITH_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int sample = join.row_sample(half);
    const bool there = join.has_row(half);
    of_rows[half] = weighed(block, sample, there);
    new_limits[half] = there && !join.across ? limits[sample] : -HUGE_VALF;
    old_limits[half] = there ? limits[block.slots.apart + sample] : -HUGE_VALF;
  }
  KITH_UNROLL
  for (int j = 0; j < kColumnGroups; ++j) {
    if (8 * j >= join.shape.columns) break;
    KITH_UNROLL
    for (int side = 0; side < 2; ++side) {
      const int sample = join.column_sample(j, side);
      if (!join.has_column(j, side)) continue;
      const Weighed of_column = weighed(block, sample, true);
      const float limit = limits[block.slots.slot_for_new(sample)];
      const bool old = join.is_old(sample);
      KITH_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float product = products[j][2 * half + side];
        const uint32_t bit = 1u << (4 * j + 2 * half + side);
        if (!(of_column.value(product) > (old ? old_limits[half] : new_limits[half]))) for_rows |= bit;
        if (!(of_rows[half].value(product) > limit)) for_columns |= bit;
      }
    }
  }
  leave_masked(join, for_rows, false, count);
  leave_masked(join, for_columns, true, count);
}

}  // namespace kith
