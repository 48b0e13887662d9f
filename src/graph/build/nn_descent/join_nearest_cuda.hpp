// What a tile of products says of a join's samples: the least value of each slot, and then the pairs that may be its
// nearest. The code is kept small: what does not fit the instruction cache takes longer than what it does.
#pragma once

#include "core/ordered_key.hpp"
#include "graph/build/nn_descent/join_memory_cuda.hpp"
#include "graph/build/nn_descent/join_product_cuda.hpp"

#include <cstdint>

namespace kith {

// The least of values that four neighbouring lanes have, eight each: a lane gets those of its part, two of them.
__device__ inline void least_of_four_lanes(float (&values)[2 * kRowGroups], float (&mine)[2]) {
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
// Columns of a tile that a warp has some of, of one kind.
__device__ inline bool has_columns(const JoinBlock& join, int first_col, bool old) {
  const int first = first_col + static_cast<int>(threadIdx.x) / 32 * 16;
  return first < join.counts().all() &&
         (old ? first + 16 > join.counts().fresh && join.counts().fresh < join.counts().all()
              : first < join.counts().fresh);
}
__device__ inline bool is_column(const JoinBlock& join, int column, bool old) {
  return column < join.counts().all() && (column >= join.counts().fresh) == old;
}

// A sample is not compared with itself: its product becomes that of what is farthest.
__device__ __forceinline__ void drop_selves(const JoinBlock& join, JoinProducts& products, int first_row,
                                            int first_col) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = static_cast<int>(threadIdx.x) / 32 + (first_col - first_row) / 16;  // whose rows are my columns
  if (group < 0 || group >= kRowGroups || first_row + group * 16 >= join.counts().fresh) {
    return;  // all of the warp alike
  }
  KITH_UNROLL
  for (int m = 0; m < kRowGroups; ++m) {
    KITH_UNROLL
    for (int n = 0; n < 2; ++n) {
      KITH_UNROLL
      for (int side = 0; side < 2; ++side) {
        if (m == group && lane / 4 == lane % 4 * 2 + side) products[m][n][2 * n + side] = -HUGE_VALF;
      }
    }
  }
}

// The least values of a tile's rows among its columns of one kind, and of its OLD columns.
__device__ __forceinline__ void note_least(const JoinBlock& join, const JoinProducts& products, int first_row,
                                           int first_col, bool old) {
  float of_rows[2 * kRowGroups];
  KITH_UNROLL
  for (int i = 0; i < 2 * kRowGroups; ++i) of_rows[i] = HUGE_VALF;
  KITH_UNROLL
  for (int n = 0; n < 2; ++n) {
    KITH_UNROLL
    for (int side = 0; side < 2; ++side) {
      const int column = first_col + product_column(n, side);
      const Weighed mine = weighed(join, column, is_column(join, column, old));
      KITH_UNROLL
      for (int m = 0; m < kRowGroups; ++m) {
        if (first_row + m * 16 >= join.counts().fresh) break;
        KITH_UNROLL
        for (int half = 0; half < 2; ++half) {
          of_rows[2 * m + half] = fminf(of_rows[2 * m + half], mine.value(products[m][n][2 * half + side]));
        }
      }
    }
  }
  float least[2];
  least_of_four_lanes(of_rows, least);
  const int part = static_cast<int>(threadIdx.x) % 4;  // values part, part + 4 of the eight
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int row = first_row + product_row(part / 2 + 2 * i, part % 2);
    if (row < join.counts().fresh && least[i] < HUGE_VALF) {
      atomicMin(join.memory.least() + (old ? join.slots.apart : 0) + row, ordered_key(least[i]));
    }
  }
  if (!old) return;
  float of_columns[4] = {HUGE_VALF, HUGE_VALF, HUGE_VALF, HUGE_VALF};
  KITH_UNROLL
  for (int i = 0; i < 2 * kRowGroups; ++i) {
    if (first_row + i / 2 * 16 >= join.counts().fresh) break;
    const int row = first_row + product_row(i / 2, i % 2);
    const Weighed mine = weighed(join, row, row < join.counts().fresh);
    KITH_UNROLL
    for (int c = 0; c < 4; ++c) {
      of_columns[c] = fminf(of_columns[c], mine.value(products[i / 2][c / 2][2 * (i % 2) + c % 2]));
    }
  }
  KITH_UNROLL
  for (int c = 0; c < 4; ++c) {
    KITH_UNROLL
    for (int apart = 4; apart < 32; apart *= 2) {
      of_columns[c] = fminf(of_columns[c], __shfl_xor_sync(0xFFFFFFFFu, of_columns[c], apart));
    }
    const int column = first_col + product_column(c / 2, c % 2);
    if (threadIdx.x % 32 < 4 && is_column(join, column, true) && of_columns[c] < HUGE_VALF) {
      atomicMin(join.memory.least() + join.slots.old_slot(column), ordered_key(of_columns[c]));
    }
  }
}

// The pairs of `mask`, a bit for each of a thread's values, for their rows or for their columns. NEW samples, who are
// rows and columns, meet where the row is the smaller.
__device__ inline void leave_pairs(const JoinBlock& join, uint32_t mask, int first_row, int first_col, bool for_columns,
                                   int* count) {
  while (mask != 0) {
    const int bit = __ffs(static_cast<int>(mask)) - 1;
    mask &= mask - 1;
    const int row = first_row + product_row(bit / 8, bit / 4 % 2);
    const int column = first_col + product_column(bit / 2 % 2, bit % 2);
    if (row >= join.counts().fresh || row >= column) continue;
    const int slot = for_columns ? join.slots.slot_for_new(column) : join.slots.new_slot(row, column);
    const int place = atomicAdd(count, 1);
    if (place >= join.memory.room.left) continue;
    join.memory.left()[place] = {static_cast<uint16_t>(slot), static_cast<uint16_t>(for_columns ? row : column)};
    atomicAdd(join.memory.hits() + slot, 1u);
  }
}

// What is not above the limits of its row or its column, among columns of one kind. A value that is no number stays.
__device__ __forceinline__ void leave_near(const JoinBlock& join, const JoinProducts& products, int first_row,
                                           int first_col, bool old, int* count) {
  uint32_t for_rows = 0;
  uint32_t for_columns = 0;
  Weighed of_columns[4];
  float column_limits[4];
  uint32_t there = 0;
  KITH_UNROLL
  for (int c = 0; c < 4; ++c) {
    const int column = first_col + product_column(c / 2, c % 2);
    const bool mine = is_column(join, column, old);
    of_columns[c] = weighed(join, column, mine);
    column_limits[c] = mine ? join.memory.limits()[join.slots.slot_for_new(column)] : -HUGE_VALF;
    there |= mine ? 0x11111111u << c : 0;
  }
  const int last_column = first_col + static_cast<int>(threadIdx.x) / 32 * 16 + 15;  // of the warp
  const int end_row = old ? join.counts().fresh : min(join.counts().fresh, last_column);
  KITH_UNROLL
  for (int i = 0; i < 2 * kRowGroups; ++i) {
    if (first_row + i / 2 * 16 >= end_row) break;
    const int row = first_row + product_row(i / 2, i % 2);
    const bool mine = row < join.counts().fresh;
    const float limit = mine ? join.memory.limits()[(old ? join.slots.apart : 0) + row] : -HUGE_VALF;
    const Weighed of_row = weighed(join, row, mine);
    KITH_UNROLL
    for (int c = 0; c < 4; ++c) {
      const float product = products[i / 2][c / 2][2 * (i % 2) + c % 2];
      if (!(of_columns[c].value(product) > limit)) for_rows |= 1u << (4 * i + c);
      if (!(of_row.value(product) > column_limits[c])) for_columns |= 1u << (4 * i + c);
    }
  }
  leave_pairs(join, for_rows & there, first_row, first_col, false, count);
  leave_pairs(join, for_columns & there, first_row, first_col, true, count);
}

}  // namespace kith
