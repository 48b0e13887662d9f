// From values of products to offers: limits of the slots, which of the pairs left are offered by their values, the keys of the
// others, and what is offered of these.
#pragma once

#include "core/ordered_key.hpp"
#include "graph/nn_descent/join_memory_cuda.hpp"
#include "graph/nn_descent/join_offers_cuda.hpp"
#include "graph/nn_descent/waiting_offers_cuda.hpp"
#include "graph/pairs/pair_key_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kOffered = 0x8000;  // a bit beside the number of a pair that is offered as soon as its key is known
static_assert(kLeftRoom <= kOffered);

// Values up to which a pair may enter the list of a slot's sample; once the least are known, and be its nearest.
template <int kThreads>
__device__ inline void set_limits(const JoinBlock& join, const OperandFacts& others, bool nearest) {
#pragma unroll 1
  for (int slot = static_cast<int>(threadIdx.x); slot < join.slots.count(); slot += kThreads) {
    const int sample = join.slots.sample_of(slot);
    if (sample == join.counts().all()) continue;
    const JoinFacts facts = join.memory.facts()[sample];
    const JoinWindow window = join_window(join.task.rows.kind, join.task.rows.cols, facts, others);
    float limit = HUGE_VALF;
    if (facts.scale > 0 && !nearest) limit = key_limit(window, key_of_ordered(ordered_of(join.memory.ends()[sample])));
    if (facts.scale > 0 && nearest) {
      limit = join.memory.limits()[slot];
      const uint32_t least = join.memory.least()[slot];
      if (least != kNanKey) limit = fminf(limit, nearest_limit(window, key_of_ordered(least)));
    }
    join.memory.limits()[slot] = limit;
  }
}

enum class Need : uint8_t { none, key, offer };  // nothing more, a key to compare, or one that is offered as it is

// Offers a pair that is left, alone in its slot, by its value, which is the slot's least, where that will do; says what is needed
// where it does not.
__device__ inline Need offer_alone(const JoinBlock& join, const LeftPair& pair) {
  const int sample = join.slots.sample_of(pair.slot);
  const uint32_t row = join.memory.ids()[sample];
  const uint32_t neighbor = join.memory.ids()[pair.other];
  const uint64_t waiting = __ldcg(inbox_place(join.task, row, neighbor));
  const Known known = is_known(join.task.known, row, neighbor);
  if (known == Known::yes) return Need::none;
  if (known == Known::unsure) return Need::key;
  if (join.task.all_pairs) return Need::offer;
  const JoinFacts facts = join.memory.facts()[sample];
  const JoinFacts neighbor_facts = join.memory.facts()[pair.other];
  if (!(facts.scale > 0 && neighbor_facts.scale > 0)) return Need::key;
  const float value = key_of_ordered(join.memory.least()[pair.slot]);
  return offer_value(join.task, row, facts, neighbor, neighbor_facts, value, waiting) ? Need::none : Need::key;
}

__device__ inline void offer(const JoinBlock& join, int sample, uint64_t neighbor) {
  offer_to_list(join.task, join.memory.ids()[sample], join.memory.ends()[sample], neighbor);
}

// A key has been computed: what the sample is offered, or may be.
__device__ inline void take(const JoinBlock& join, int slot, int sample, float key, int other) {
  const uint64_t neighbor = pack_neighbor(ordered_key(key), join.memory.ids()[other]);
  if (join.task.all_pairs) return offer(join, sample, neighbor);
  atomicMin(reinterpret_cast<unsigned long long*>(join.memory.nearest() + slot),
            static_cast<unsigned long long>(neighbor));
}

// Of the pairs left those whose keys are needed, all where a sample has several; the others are offered, where they change
// anything.
template <int kThreads>
__device__ inline void choose_needed(const JoinBlock& join, int count, int* needed) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const LeftPair pair = join.memory.left()[i];
    const bool alone = join.task.all_pairs || join.memory.hits()[pair.slot] == 1;
    const Need need = alone ? offer_alone(join, pair) : Need::key;
    if (need == Need::none) continue;
    join.memory.needed()[atomicAdd(needed, 1)] = static_cast<uint16_t>(i | (need == Need::offer ? kOffered : 0));
  }
}

// Keys of `count` pairs, of those needed or, where there were too many, of all of the join, four threads to a pair; the threads
// of a warp stay together.
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

// Offers the nearest of the slots. With products some wait by their values: those that may change something are written down
// first, as many as there is room for, and offered by four threads each.
template <bool kProducts, int kThreads>
__device__ inline void offer_nearest(const JoinBlock& join, int* open) {
#pragma unroll 1
  for (int first = 0; first < join.slots.count(); first += kLeftRoom) {
    const int end = min(first + kLeftRoom, join.slots.count());
#pragma unroll 1
    for (int slot = first + static_cast<int>(threadIdx.x); slot < end; slot += kThreads) {
      const uint64_t neighbor = join.memory.nearest()[slot];
      if (neighbor == kPadding) continue;
      const int sample = join.slots.sample_of(slot);
      if constexpr (!kProducts) {
        offer(join, sample, neighbor);
      } else if (may_enter(join.task, join.memory.ids()[sample], join.memory.ends()[sample], neighbor)) {
        join.memory.needed()[atomicAdd(open, 1)] = static_cast<uint16_t>(slot);
      }
    }
    if constexpr (!kProducts) continue;
    __syncthreads();
    constexpr int kWarpOffers = 32 / kRowThreads;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x) / 32 * kWarpOffers; i < *open; i += kThreads / kRowThreads) {
      const int mine = i + static_cast<int>(threadIdx.x) % 32 / kRowThreads;
      const int slot = join.memory.needed()[min(mine, *open - 1)];
      const int sample = join.slots.sample_of(slot);
      offer_key(join.task, mine < *open, join.memory.ids()[sample], join.memory.facts()[sample], join.memory.nearest()[slot]);
    }
    if (end == join.slots.count()) break;
    __syncthreads();
    if (threadIdx.x == 0) *open = 0;
    __syncthreads();
  }
}

}  // namespace kith
