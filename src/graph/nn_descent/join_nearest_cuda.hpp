// What a tile of products says of a join's samples: the least value of each slot, and then the pairs that may be its
// nearest. A group of eight columns is of one kind, NEW or OLD; values past the samples are anything and count for nothing.
#pragma once

#include "core/ordered_key.hpp"
#include "graph/nn_descent/join_memory_cuda.hpp"
#include "graph/nn_descent/join_product_cuda.hpp"

#include <cstdint>

namespace kith {

// join_value() as one operation, product * times + plus; of what does not take part, the largest.
struct Weighed {
  float times;
  float plus;

  __device__ float value(float product) const { return fmaf(product, times, plus); }
};

__device__ inline Weighed weighed(const JoinBlock& join, int sample, bool takes_part) {
  if (!takes_part) return {0.0f, HUGE_VALF};
  const float weight = join.memory.weights()[sample];
  return join.task.rows.kind == KeyKind::inner_product ? Weighed{-weight, 0.0f} : Weighed{-1.0f, weight};
}

// A sample is not compared with itself: its product becomes that of what is farthest.
__device__ inline void drop_selves(const JoinBlock& join, JoinProducts& products, int first_row, int first_col) {
  const bool self[2] = {lane_of_thread() / 4 == column_in_group(0), lane_of_thread() / 4 == column_in_group(1)};
  KITH_UNROLL
  for (int n = 0; n < kColumnGroups; ++n) {
    const int group = first_col + group_column(n);
    const int apart = (group - first_row) / kSampleGroup;  // whose half of a row group it is
    if (group >= join.counts().fresh || apart < 0 || apart >= 2 * kRowGroups) continue;
    KITH_UNROLL
    for (int half = 0; half < 2 * kRowGroups; ++half) {
      KITH_UNROLL
      for (int side = 0; side < 2; ++side) {
        if (half == apart && self[side]) products[half / 2][n][half % 2 * 2 + side] = -HUGE_VALF;
      }
    }
  }
}

// The least of values that four neighbouring lanes have, eight each: a lane gets those of its part, two of them.
__device__ inline void least_of_four_lanes(const float (&values)[2 * kRowGroups], float (&mine)[2]) {
  static_assert(kRowGroups == 4);
  const bool odd = threadIdx.x % 2 != 0;
  const bool upper = threadIdx.x % 4 >= 2;
  float half[4];
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float kept = odd ? values[2 * i + 1] : values[2 * i];
    const float given = odd ? values[2 * i] : values[2 * i + 1];
    half[i] = fminf(kept, __shfl_xor_sync(0xFFFFFFFFu, given, 1));
  }
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) {
    const float kept = upper ? half[2 * i + 1] : half[2 * i];
    const float given = upper ? half[2 * i] : half[2 * i + 1];
    mine[i] = fminf(kept, __shfl_xor_sync(0xFFFFFFFFu, given, 2));
  }
}

// The least values of rows among columns of one kind go to their slots.
__device__ inline void put_least_of_rows(const JoinBlock& join, const float (&of_rows)[2 * kRowGroups], int first_row,
                                         bool old) {
  float least[2];
  least_of_four_lanes(of_rows, least);
  const int part = static_cast<int>(threadIdx.x) % 4;  // values part, part + 4 of the eight
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int row = first_row + product_row(part / 2 + 2 * i, part % 2);
    if (row < join.counts().fresh && least[i] < HUGE_VALF) {
      atomicMin(join.memory.least() + join.slots.new_slot(row, old), ordered_key(least[i]));
    }
  }
}

// The least values of a tile's rows among its columns of one kind, and of its OLD columns. Kinds are gone over one after
// the other, and weights read as they are needed: registers hold the products.
__device__ __forceinline__ void note_least(const JoinBlock& join, const JoinProducts& products, int first_row,
                                           int first_col) {
  const JoinCounts& counts = join.counts();
  const int row_groups = (counts.fresh - first_row + 15) / 16;
#pragma unroll 1
  for (int kind = 0; kind < 2; ++kind) {
    const bool old = kind == 1;
    const int first = old ? counts.first_old() : 0;
    const int end = old ? counts.end() : counts.fresh;
    if (first_col + group_column(0) >= end || first_col + group_column(kColumnGroups - 1) < first) continue;
    float of_rows[2 * kRowGroups];
    KITH_UNROLL
    for (int i = 0; i < 2 * kRowGroups; ++i) of_rows[i] = HUGE_VALF;
    KITH_UNROLL
    for (int n = 0; n < kColumnGroups; ++n) {
      const int group = first_col + group_column(n);
      if (group < first || group >= end) continue;
      float of_columns[2] = {HUGE_VALF, HUGE_VALF};
      Weighed of_column[2];
      KITH_UNROLL
      for (int side = 0; side < 2; ++side) {
        const int column = group + column_in_group(side);
        of_column[side] = weighed(join, column, column < end);
      }
      KITH_UNROLL
      for (int i = 0; i < 2 * kRowGroups; ++i) {
        if (i / 2 >= row_groups) break;
        KITH_UNROLL
        for (int side = 0; side < 2; ++side) {
          of_rows[i] = fminf(of_rows[i], of_column[side].value(products[i / 2][n][2 * (i % 2) + side]));
        }
        if (!old) continue;
        const int row = first_row + product_row(i / 2, i % 2);
        const Weighed of_row = weighed(join, row, row < counts.fresh);
        KITH_UNROLL
        for (int side = 0; side < 2; ++side) {
          of_columns[side] = fminf(of_columns[side], of_row.value(products[i / 2][n][2 * (i % 2) + side]));
        }
      }
      if (!old) continue;
      KITH_UNROLL
      for (int side = 0; side < 2; ++side) {
        KITH_UNROLL
        for (int apart = 4; apart < 32; apart *= 2) {
          of_columns[side] = fminf(of_columns[side], __shfl_xor_sync(0xFFFFFFFFu, of_columns[side], apart));
        }
        const int column = group + column_in_group(side);
        if (lane_of_thread() < 4 && column < end && of_columns[side] < HUGE_VALF) {
          atomicMin(join.memory.least() + join.slots.old_slot(column), ordered_key(of_columns[side]));
        }
      }
    }
    put_least_of_rows(join, of_rows, first_row, old);
  }
}

// The pairs of `mask`, a bit for each of a thread's values of a column group.
__device__ inline void leave_pairs(const JoinBlock& join, uint32_t mask, int first_row, int group, bool old, bool for_old,
                                   int* count) {
  while (mask != 0) {
    const int bit = __ffs(static_cast<int>(mask)) - 1;
    mask &= mask - 1;
    const int row = first_row + product_row(bit / 4, bit / 2 % 2);
    const int column = group + column_in_group(bit % 2);
    if (row >= join.counts().fresh || row == column || !join.counts().is_sample(column)) continue;
    const int slot = for_old ? join.slots.old_slot(column) : join.slots.new_slot(row, old);
    const int place = atomicAdd(count, 1);
    if (place >= kLeftRoom) continue;
    join.memory.left()[place] = {static_cast<uint16_t>(slot), static_cast<uint16_t>(for_old ? row : column)};
    atomicAdd(join.memory.hits() + slot, 1u);
  }
}

// What is not above the limits. A value that is no number stays.
__device__ __forceinline__ void leave_near(const JoinBlock& join, const JoinProducts& products, int first_row,
                                           int first_col, int* count) {
  const JoinCounts& counts = join.counts();
  const int row_groups = (counts.fresh - first_row + 15) / 16;
  KITH_UNROLL
  for (int n = 0; n < kColumnGroups; ++n) {
    const int group = first_col + group_column(n);
    if (group >= counts.end()) break;
    const bool old = group >= counts.first_old();
    Weighed of_column[2];
    float column_limits[2];
    KITH_UNROLL
    for (int side = 0; side < 2; ++side) {
      const int column = group + column_in_group(side);
      const bool mine = counts.is_sample(column);
      of_column[side] = weighed(join, column, mine);
      column_limits[side] = old && mine ? join.memory.limits()[join.slots.old_slot(column)] : -HUGE_VALF;
    }
    uint32_t for_rows = 0;
    uint32_t for_columns = 0;
    KITH_UNROLL
    for (int i = 0; i < 2 * kRowGroups; ++i) {
      if (i / 2 >= row_groups) break;
      const int row = first_row + product_row(i / 2, i % 2);
      const bool mine = row < counts.fresh;
      const float limit = mine ? join.memory.limits()[join.slots.new_slot(row, old)] : -HUGE_VALF;
      KITH_UNROLL
      for (int side = 0; side < 2; ++side) {
        const float product = products[i / 2][n][2 * (i % 2) + side];
        if (!(of_column[side].value(product) > limit)) for_rows |= 1u << (2 * i + side);
      }
      if (!old) continue;
      const Weighed of_row = weighed(join, row, mine);
      KITH_UNROLL
      for (int side = 0; side < 2; ++side) {
        const float product = products[i / 2][n][2 * (i % 2) + side];
        if (!(of_row.value(product) > column_limits[side])) for_columns |= 1u << (2 * i + side);
      }
    }
    leave_pairs(join, for_rows, first_row, group, old, false, count);
    if (old) leave_pairs(join, for_columns, first_row, group, old, true, count);
  }
}

}  // namespace kith
