// From values of products to offers: the limits of slots, the choice of remaining pairs that need a canonical key, the
// keys, and the offers.
#pragma once

#include "core/ordered_key.hpp"
#include "graph/build/nn_descent/join_memory_cuda.hpp"
#include "graph/lists/pairs/pair_key_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kOffered = 0x8000;  // a bit added to the number of a needed pair

// Computes the values up to which a pair may enter the list of a slot's sample and, unless every pair is offered, be
// its nearest, given the least values.
template <int kThreads>
__device__ inline void set_limits(const JoinBlock& join, const OperandBounds& others) {
#pragma unroll 1
  for (int slot = static_cast<int>(threadIdx.x); slot < join.slots.count(); slot += kThreads) {
    const int sample = join.slots.sample_of(slot);
    const JoinBounds bounds = join.memory.bounds()[sample];
    const JoinWindow window = join_window(join.task.rows.kind, join.task.rows.cols, bounds, others);
    float limit = HUGE_VALF;
    if (bounds.scale > 0) {
      limit = key_limit(window, key_of_ordered(ordered_of(join.memory.ends()[sample])));
      const uint32_t least = join.task.all_pairs ? kNanKey : join.memory.least()[slot];
      if (least != kNanKey) limit = fminf(limit, nearest_limit(window, key_of_ordered(least)));
    }
    join.memory.limits()[slot] = limit;
  }
}

enum class Need : uint8_t { none, key, offer };  // nothing, a key to compare, or a key offered without comparison

// What to do with the only pair left in a slot, before its key is known: none if an offer would change nothing. It has
// the slot's least value, unless the other sample has no operand.
__device__ inline Need need_of(const JoinBlock& join, const LeftPair& pair, const OperandBounds& others) {
  const int sample = join.slots.sample_of(pair.slot);
  const uint32_t row = join.memory.ids()[sample];
  const uint32_t neighbor = join.memory.ids()[pair.other];
  const uint32_t waiting = ordered_of(__ldcg(inbox_place(join.task, row, neighbor)));
  const Known known = is_known(join.task.known, row, neighbor);
  if (known == Known::yes) return Need::none;
  const Need need = known == Known::no ? Need::offer : Need::key;
  const bool sure = join.memory.limits()[pair.slot] < HUGE_VALF && join.memory.bounds()[pair.other].scale > 0;
  if (join.task.all_pairs || !sure) return need;
  const JoinWindow window = join_window(join.task.rows.kind, join.task.rows.cols, join.memory.bounds()[sample], others);
  return ordered_key(key_below(window, key_of_ordered(join.memory.least()[pair.slot]))) > waiting ? Need::none : need;
}

__device__ inline void offer(const JoinBlock& join, int sample, uint64_t neighbor) {
  offer_to_list(join.task, join.memory.ids()[sample], join.memory.ends()[sample], neighbor);
}

// Takes a computed key as an offer, or a possible offer, to the sample.
__device__ inline void take(const JoinBlock& join, int slot, int sample, float key, int other) {
  const uint64_t neighbor = pack_neighbor(ordered_key(key), join.memory.ids()[other]);
  if (join.task.all_pairs) return offer(join, sample, neighbor);
  lower_to(join.memory.nearest() + slot, neighbor);
}

// Chooses the candidate pairs that need keys; all of them if a sample has several.
template <int kThreads>
__device__ inline void choose_needed(const JoinBlock& join, int count, const OperandBounds& others, int* needed) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const LeftPair pair = join.memory.left()[i];
    const bool alone = join.task.all_pairs || join.memory.hits()[pair.slot] == 1;
    const Need need = alone ? need_of(join, pair, others) : Need::key;
    if (need == Need::none) continue;
    join.memory.needed()[atomicAdd(needed, 1)] = static_cast<uint16_t>(i | (need == Need::offer ? kOffered : 0));
  }
}

// Computes keys of `count` pairs: those needed or, if there were too many, all of the join; four threads per pair,
// without divergence within a warp.
template <bool kProducts, int kThreads>
__device__ inline void compute_keys(const JoinBlock& join, int count, bool all) {
  const int width = join.counts().all() - join.first_column;
  constexpr int kWarpPairs = 32 / kRowThreads;
#pragma unroll 1
  for (int first = static_cast<int>(threadIdx.x) / 32 * kWarpPairs; first < count; first += kThreads / kRowThreads) {
    const int mine = first + static_cast<int>(threadIdx.x) % 32 / kRowThreads;
    const int i = min(mine, count - 1);
    bool wanted = mine < count && threadIdx.x % kRowThreads == 0;
    int row = 0;
    int column = 0;
    int slot = 0;
    bool offered = false;
    if (all) {
      row = i / width;
      column = join.first_column + i % width;
      if (column < join.counts().fresh && column <= row) wanted = false;
      slot = join.slots.new_slot(row, column);
    } else {
      const int needed = join.memory.needed()[i];
      const LeftPair pair = join.memory.left()[needed & ~kOffered];
      offered = (needed & kOffered) != 0;
      slot = pair.slot;
      row = join.slots.sample_of(pair.slot);
      column = pair.other;
    }
    const uint32_t a = join.memory.ids()[row];
    const uint32_t b = join.memory.ids()[column];
    const float key = kProducts ? product_pair_key(join.task.rows, a, b) : pair_key(join.task.rows, a, b);
    if (!wanted) continue;
    if (offered) {
      offer_unknown(join.task, join.memory.ids()[row], join.memory.ends()[row],
                    pack_neighbor(ordered_key(key), join.memory.ids()[column]));
      continue;
    }
#pragma unroll 1
    for (int side = 0; side < (all ? 2 : 1); ++side) {
      take(join, slot, row, key, column);
      slot = join.slots.slot_for_new(column);
      const int other = row;
      row = column;
      column = other;
    }
  }
}

template <int kThreads>
__device__ inline void offer_nearest(const JoinBlock& join) {
#pragma unroll 1
  for (int slot = static_cast<int>(threadIdx.x); slot < join.slots.count(); slot += kThreads) {
    if (join.memory.nearest()[slot] != kPadding) offer(join, join.slots.sample_of(slot), join.memory.nearest()[slot]);
  }
}

}  // namespace kith
