// The products of a small join (small_join_cuda.hpp) in a warp's registers, and what they say of its samples.
//
// Lane 4 g + t holds of row group m and column group j the rows 16 m + g and 16 m + g + 8, and the columns 8 j + 2 t and
// 8 j + 2 t + 1: value i lies in the first or second of these rows, i / 2, and of these columns, i % 2.
#pragma once

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/ptx.hpp"
#include "graph/nn_descent/join_memory_cuda.hpp"
#include "graph/nn_descent/join_nearest_cuda.hpp"
#include "graph/nn_descent/join_size.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/select/device_warp_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kColumnGroups = kSmallColumns / 8;
template <int kGroups>
using SmallProducts = float[kGroups][kColumnGroups][4];

// A join as a warp sees it.
struct SmallJoin {
  const JoinBlock& block;
  JoinShape shape;
  bool across;

  __device__ int row(int i) const { return 8 * i + lane_index() / 4; }  // i counts halves of row groups
  __device__ int column(int j, int side) const { return 8 * j + lane_index() % 4 * 2 + side; }
  __device__ bool has_row(int i) const { return row(i) < shape.rows; }
  __device__ bool has_column(int j, int side) const { return column(j, side) < shape.columns; }
  __device__ int row_sample(int i) const { return shape.first_row + row(i); }
  __device__ int column_sample(int j, int side) const { return shape.first_column + column(j, side); }
  // Whether a sample that is a column is of the second kind of a row's slots; in a merge there is one kind.
  __device__ bool is_old(int sample) const { return across || sample >= block.counts().fresh; }
};

// The lane's two units of a chunk of a row, of which one lies 64 bytes from the other.
__device__ __forceinline__ void load_units(const JoinOperands& operands, uint32_t row, int64_t chunk, uint4 (&units)[2]) {
  const uint32_t swizzle = row % 8;
  const std::byte* const from = operands.halves +
                                (static_cast<int64_t>(row / kOperandTile) * operands.chunks + chunk) * kTileChunkBytes +
                                row % kOperandTile * kChunkBytes + ((threadIdx.x % 4 ^ swizzle) * 16);
  units[0] = __ldg(reinterpret_cast<const uint4*>(from));
  units[1] = __ldg(reinterpret_cast<const uint4*>(from + (swizzle < 4 ? 64 : -64)));
}

template <int kGroups>
__device__ __forceinline__ void multiply_small(const SmallJoin& join, SmallProducts<kGroups>& products) {
  constexpr int kAtOnce = kGroups == 1 ? 4 : 2;  // column groups whose operands are on their way together
  const JoinOperands& operands = join.block.task.operands;
  const uint32_t* const ids = join.block.memory.ids();
  KITH_UNROLL
  for (int m = 0; m < kGroups; ++m) {
    KITH_UNROLL
    for (int j = 0; j < kColumnGroups; ++j) {
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) products[m][j][i] = 0;
    }
  }
#pragma unroll 1
  for (int64_t chunk = 0; chunk < operands.chunks; ++chunk) {
    uint4 a[2 * kGroups][2] = {};
    KITH_UNROLL
    for (int i = 0; i < 2 * kGroups; ++i) {
      if (join.has_row(i)) load_units(operands, ids[join.row_sample(i)], chunk, a[i]);
    }
    KITH_UNROLL
    for (int first = 0; first < kColumnGroups; first += kAtOnce) {
      if (8 * first >= join.shape.columns) break;
      uint4 b[kAtOnce][2] = {};
      KITH_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        const int column = 8 * (first + n) + lane_index() / 4;
        if (column < join.shape.columns) load_units(operands, ids[join.shape.first_column + column], chunk, b[n]);
      }
      KITH_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        KITH_UNROLL
        for (int unit = 0; unit < 2; ++unit) {
          const uint32_t lower[2] = {b[n][unit].x, b[n][unit].y};
          const uint32_t upper[2] = {b[n][unit].z, b[n][unit].w};
          KITH_UNROLL
          for (int m = 0; m < kGroups; ++m) {
            const uint4& even = a[2 * m][unit];
            const uint4& odd = a[2 * m + 1][unit];
            ptx::multiply_add(products[m][first + n], {even.x, odd.x, even.y, odd.y}, lower);
            ptx::multiply_add(products[m][first + n], {even.z, odd.z, even.w, odd.w}, upper);
          }
        }
      }
    }
  }
  if (join.across) return;
  // A sample is not compared with itself: its product becomes that of what is farthest.
  KITH_UNROLL
  for (int i = 0; i < 2 * kGroups; ++i) {
    KITH_UNROLL
    for (int side = 0; side < 2; ++side) {
      if (join.row(i) == join.column(i, side)) products[i / 2][i][2 * (i % 2) + side] = -HUGE_VALF;
    }
  }
}

__device__ inline uint32_t least_key(float least) { return least < HUGE_VALF ? ordered_key(least) : kNanKey; }

// The least values of the slots: of rows among the columns of each kind.
template <int kGroups>
__device__ __forceinline__ void note_rows(const SmallJoin& join, const SmallProducts<kGroups>& products) {
  float of_new[2 * kGroups];
  float of_old[2 * kGroups];
  KITH_UNROLL
  for (int i = 0; i < 2 * kGroups; ++i) of_new[i] = of_old[i] = HUGE_VALF;
  KITH_UNROLL
  for (int j = 0; j < kColumnGroups; ++j) {
    if (8 * j >= join.shape.columns) break;
    KITH_UNROLL
    for (int side = 0; side < 2; ++side) {
      const int sample = join.column_sample(j, side);
      const Weighed mine = weighed(join.block, sample, join.has_column(j, side));
      const bool old = join.is_old(sample);
      KITH_UNROLL
      for (int i = 0; i < 2 * kGroups; ++i) {
        const float value = mine.value(products[i / 2][j][2 * (i % 2) + side]);
        of_old[i] = fminf(of_old[i], old ? value : HUGE_VALF);
        of_new[i] = fminf(of_new[i], old ? HUGE_VALF : value);
      }
    }
  }
  KITH_UNROLL
  for (int i = 0; i < 2 * kGroups; ++i) {
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

// Leaves a lane the least of some values that 2 kHalf lanes have twice as many of: its half, what the lane `apart` from it has of
// this among them.
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
template <int kGroups>
__device__ __forceinline__ void note_columns(const SmallJoin& join, const SmallProducts<kGroups>& products) {
  float values[2 * kColumnGroups];
  KITH_UNROLL
  for (int i = 0; i < 2 * kColumnGroups; ++i) values[i] = HUGE_VALF;
  KITH_UNROLL
  for (int i = 0; i < 2 * kGroups; ++i) {
    const Weighed mine = weighed(join.block, join.row_sample(i), join.has_row(i));
    KITH_UNROLL
    for (int j = 0; j < kColumnGroups; ++j) {
      if (8 * j >= join.shape.columns) break;
      KITH_UNROLL
      for (int side = 0; side < 2; ++side) {
        values[2 * j + side] = fminf(values[2 * j + side], mine.value(products[i / 2][j][2 * (i % 2) + side]));
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

// The pairs of `mask`, bit 4 j + i of row group m, for their rows or for their columns. NEW samples, who are rows and columns,
// meet where the row is the smaller.
__device__ inline void leave_small_pairs(const SmallJoin& join, uint32_t mask, int m, bool for_columns, int* count) {
  const JoinBlock& block = join.block;
  while (mask != 0) {
    const int bit = __ffs(static_cast<int>(mask)) - 1;
    mask &= mask - 1;
    const int i = 2 * m + bit / 2 % 2;
    const int row = join.row_sample(i);
    const int column = join.column_sample(bit / 4, bit % 2);
    if (!join.has_row(i) || (!join.across && row >= column)) continue;
    const int slot = for_columns ? block.slots.slot_for_new(column) : block.slots.new_slot(row, column);
    const int place = atomicAdd(count, 1);
    if (place >= block.memory.room.left) continue;
    block.memory.left()[place] = {static_cast<uint16_t>(slot), static_cast<uint16_t>(for_columns ? row : column)};
    atomicAdd(block.memory.hits() + slot, 1u);
  }
}

// What is not above the limits of its row or its column. A value that is no number stays.
template <int kGroups>
__device__ __forceinline__ void leave_small(const SmallJoin& join, const SmallProducts<kGroups>& products, int* count) {
  const JoinBlock& block = join.block;
  const float* const limits = block.memory.limits();
  KITH_UNROLL
  for (int m = 0; m < kGroups; ++m) {
    if (16 * m >= join.shape.rows) break;
    uint32_t for_rows = 0;
    uint32_t for_columns = 0;
    Weighed of_rows[2];
    float new_limits[2];
    float old_limits[2];
    KITH_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int sample = join.row_sample(2 * m + half);
      const bool there = join.has_row(2 * m + half);
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
          const float product = products[m][j][2 * half + side];
          const uint32_t bit = 1u << (4 * j + 2 * half + side);
          if (!(of_column.value(product) > (old ? old_limits[half] : new_limits[half]))) for_rows |= bit;
          if (!(of_rows[half].value(product) > limit)) for_columns |= bit;
        }
      }
    }
    leave_small_pairs(join, for_rows, m, false, count);
    leave_small_pairs(join, for_columns, m, true, count);
  }
}

}  // namespace kith
