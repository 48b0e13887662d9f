// What a tile of products says of a join's samples: which pairs may be the nearest of a slot.
//
// Products go to shared memory, in the operands' place. Then a thread has a slot: every column looks for its nearest NEW
// sample among the rows, and two threads of each row for its nearest OLD one among the columns. A slot's thread knows its
// least value and so its limit, and hands on what is not above it: no exchange between threads, and little code, which
// has to fit the instruction cache. Values past the samples are anything and count for nothing.
#pragma once

#include "graph/nn_descent/join_keys_cuda.hpp"
#include "graph/nn_descent/join_memory_cuda.hpp"
#include "graph/nn_descent/join_product_cuda.hpp"

#include <cstdint>

namespace kith {

// Of a row of products. Columns are read by neighbouring threads, rows by every second: 10 banks more for each row keep
// both apart.
inline constexpr int kProductPitch = kJoinColumns + 10;
inline constexpr int kProductBytes = kJoinRows * kProductPitch * 4;

__device__ inline float* product_values() { return reinterpret_cast<float*>(join_shared); }

// Products of rows and columns past the tile's are left out, by groups.
__device__ inline void store_products(const JoinTile& tile, const JoinProducts& products) {
  float* const values = product_values() + lane_of_thread() / 4 * kProductPitch + lane_of_thread() % 4 * 2;
  KITH_UNROLL
  for (int n = 0; n < kColumnGroups; ++n) {
    if (group_column(n) >= tile.column_count) break;
    KITH_UNROLL
    for (int m = 0; m < kRowGroups; ++m) {
      if (m * 16 >= tile.row_count) break;
      KITH_UNROLL
      for (int half = 0; half < 2; ++half) {
        auto* const to = reinterpret_cast<float2*>(values + (m * 16 + half * 8) * kProductPitch + group_column(n));
        *to = {products[m][n][2 * half], products[m][n][2 * half + 1]};
      }
    }
  }
}

// Values that a slot has in a tile: products `step` floats apart, with as many others, whose weights are so far apart.
struct SlotValues {
  const float* products = nullptr;
  const Weighed* others = nullptr;
  int count = 0;
};

template <int kStep, int kOthersStep>
__device__ __forceinline__ float least_value(const SlotValues& values) {
  float least = HUGE_VALF;
#pragma unroll 4
  for (int i = 0; i < values.count; ++i) {
    least = fminf(least, values.others[i * kOthersStep].value(values.products[i * kStep]));
  }
  return least;
}

// Which of up to 32 values from `first` on are not above the limit, or no number.
template <int kStep, int kOthersStep>
__device__ __forceinline__ uint32_t near_values(const SlotValues& values, int first, float limit) {
  const int count = min(values.count - first, 32);
  const float* const products = values.products + first * kStep;
  const Weighed* const others = values.others + first * kOthersStep;
  uint32_t mask = 0;
#pragma unroll 4
  for (int i = 0; i < count; ++i) {
    if (!(others[i * kOthersStep].value(products[i * kStep]) > limit)) mask |= 1u << i;
  }
  return mask;
}

// How many pairs a join has handed on: to be offered once their keys are known, and to have keys computed in the join.
struct HandedPairs {
  int offered;
  int needed;
};

enum class TilePass : uint8_t { least, near, both };  // of several tiles one after the other; of one at once

// All threads of the block call it, after the products are stored. `others`: the largest facts of the join. `unsure`: some
// sample has no operand, and no value.
template <int kThreads>
__device__ __forceinline__ void look_at_tile(const JoinBlock& join, const JoinTile& tile, int first_row, int first_col,
                                             TilePass pass, const OperandFacts& others, bool unsure,
                                             HandedPairs& handed) {
  static_assert(kThreads == 2 * kJoinColumns && kJoinColumns == 2 * kJoinRows);
  const JoinMemory& memory = join.memory;
  const JoinCounts& counts = join.counts();
  const bool of_rows = threadIdx.x >= kJoinColumns;  // else of columns
  const int thread = static_cast<int>(threadIdx.x) % kJoinColumns;
  const int first_old = max(counts.first_old() - first_col, 0);  // of the tile's columns
  if (of_rows && first_old >= tile.column_count) return;
  const int side = thread % 2;
  const int place = of_rows ? first_row + thread / 2 : first_col + thread;  // of the sample
  const bool there = of_rows ? thread / 2 < tile.row_count : thread < tile.column_count && counts.is_sample(place);
  const int first_other = of_rows ? first_col + first_old + side : first_row;
  const int slot = of_rows ? join.slots.new_slot(place, true) : join.slots.slot_for_new(place);
  SlotValues values;
  if (there) {
    values.products = product_values() + (of_rows ? thread / 2 * kProductPitch + first_old + side : thread);
    values.others = memory.weights() + first_other;
    values.count = of_rows ? (tile.column_count - first_old - side + 1) / 2 : tile.row_count;
    const int self = place - first_row;  // a sample is not compared with itself: it is the farthest
    if (!of_rows && self >= 0 && self < tile.row_count) product_values()[self * kProductPitch + thread] = -HUGE_VALF;
  }
  float least = HUGE_VALF;
  if (pass != TilePass::near) {
    least = of_rows ? least_value<2, 2>(values) : least_value<kProductPitch, 1>(values);
    if (of_rows) least = fminf(least, __shfl_xor_sync(0xFFFFFFFFu, least, 1));
    if (pass == TilePass::least) {
      if (there && (!of_rows || side == 0)) memory.least()[slot] = fminf(memory.least()[slot], least);
      return;
    }
  } else if (there) {
    least = memory.least()[slot];
  }
  float limit = -HUGE_VALF;
  if (there) limit = slot_limit(join, place, least, others);
  if (!(least <= limit) && !unsure) values.count = 0;
  const bool each = join.task.all_pairs;  // every pair stands for itself
  const bool knows_all = pass == TilePass::both;
  int found = 0;
  int first_found = 0;
  const auto hand_on = [&](int other, Need need) {
    if (need == Need::offer) {
      const int at = atomicAdd(&handed.offered, 1);
      if (at < kOfferedPerJoin) {
        join.task.offered[blockIdx.x * kOfferedPerJoin + at] = {memory.ids()[place], memory.ids()[other]};
        return;
      }
    }
    const int at = atomicAdd(&handed.needed, 1);
    if (at < kNeededRoom) memory.needed()[at] = needed_pair(slot, other, need);
  };
#pragma unroll 1
  for (int first = 0; first < values.count; first += 32) {
    uint32_t mask = of_rows ? near_values<2, 2>(values, first, limit) : near_values<kProductPitch, 1>(values, first, limit);
#pragma unroll 1
    for (; mask != 0; mask &= mask - 1) {
      const int i = first + __ffs(static_cast<int>(mask)) - 1;
      const int other = first_other + (of_rows ? 2 * i : i);
      if (other == place || !counts.is_sample(other)) continue;
      ++found;
      if (each) {
        const Need need = need_of(join, place, other, limit, least, others);
        if (need != Need::none) hand_on(other, need);
      } else if (found == 1 && knows_all) {
        first_found = other;  // more may come
      } else {
        if (found == 2 && knows_all) hand_on(first_found, Need::key);
        hand_on(other, Need::key);
      }
    }
  }
  const int of_other_half = of_rows ? __shfl_xor_sync(0xFFFFFFFFu, found, 1) : 0;
  if (each || !knows_all || found != 1) return;
  // Alone, it is the one with the least value, unless it has none.
  const Need need = of_other_half > 0 ? Need::key : need_of(join, place, first_found, limit, least, others);
  if (need != Need::none) hand_on(first_found, need);
}

}  // namespace kith
