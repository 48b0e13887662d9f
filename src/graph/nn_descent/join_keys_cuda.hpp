// From values of products to offers: limits of the slots, which of the pairs left need a canonical key, the keys, and what
// is offered.
#pragma once

#include "core/ordered_key.hpp"
#include "graph/nn_descent/join_memory_cuda.hpp"
#include "graph/nn_descent/join_offers_cuda.hpp"
#include "graph/pairs/pair_key_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kOffered = 0x8000;  // a bit beside the number of a pair that is needed
static_assert(kLeftRoom <= kOffered);

// Values up to which a pair may enter the list of a slot's sample and, but where all pairs are offered, be its nearest. The
// least are known. Where nothing can enter it is below every value.
template <int kThreads>
__device__ inline void set_limits(const JoinBlock& join, const OperandFacts& others) {
  const JoinMemory& memory = join.memory;
#pragma unroll 1
  for (int slot = static_cast<int>(threadIdx.x); slot < join.slots.count(); slot += kThreads) {
    if (!join.slots.is_slot(slot)) continue;
    const int sample = join.slots.sample_of(slot);
    const JoinFacts facts = memory.facts()[sample];
    float limit = HUGE_VALF;
    if (facts.scale > 0) {
      const JoinWindow window = join_window(join.task.rows.kind, join.task.rows.cols, facts, others);
      limit = key_limit(window, key_of_ordered(ordered_of(memory.ends()[sample])));
      const uint32_t least = memory.least()[slot];
      if (!join.task.all_pairs && least != kNanKey) {
        const float value = key_of_ordered(least);
        // Past the list's end there is nothing to look for, but for pairs without a value.
        if (value <= limit) limit = fminf(limit, nearest_limit(window, value));
      }
    }
    memory.limits()[slot] = limit;
  }
}

enum class Need : uint8_t { none, key, offer };  // nothing, a key to compare, or one that is offered as it is

// What becomes of a pair that is left, alone in its slot, before its key is known: none where an offer would change
// nothing. It is the one with the least value then, unless it has none: its other has no operand.
__device__ inline Need need_of(const JoinBlock& join, const LeftPair& pair, const OperandFacts& others) {
  const JoinMemory& memory = join.memory;
  const int sample = join.slots.sample_of(pair.slot);
  const uint32_t row = memory.ids()[sample];
  const uint32_t neighbor = memory.ids()[pair.other];
  const uint32_t waiting = ordered_of(__ldcg(inbox_place(join.task, row, neighbor)));
  const Known known = is_known(join.task.known, row, neighbor);
  if (known == Known::yes) return Need::none;
  const Need need = known == Known::no ? Need::offer : Need::key;
  const bool sure = memory.limits()[pair.slot] < HUGE_VALF && memory.facts()[pair.other].scale > 0;
  if (join.task.all_pairs || !sure) return need;
  const JoinWindow window = join_window(join.task.rows.kind, join.task.rows.cols, memory.facts()[sample], others);
  return ordered_key(key_below(window, key_of_ordered(memory.least()[pair.slot]))) > waiting ? Need::none : need;
}

// Of the pairs left those whose keys are needed; all where a sample has several.
template <int kThreads>
__device__ inline void choose_needed(const JoinBlock& join, int count, const OperandFacts& others, int* needed) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const LeftPair pair = join.memory.left()[i];
    const bool alone = join.task.all_pairs || join.memory.hits()[pair.slot] == 1;
    const Need need = alone ? need_of(join, pair, others) : Need::key;
    if (need == Need::none) continue;
    join.memory.needed()[atomicAdd(needed, 1)] = static_cast<uint16_t>(i | (need == Need::offer ? kOffered : 0));
  }
}

__device__ inline void offer(const JoinBlock& join, int sample, uint64_t neighbor) {
  offer_to_list(join.task, join.memory.ids()[sample], join.memory.ends()[sample], neighbor);
}

// A key has been computed: what the sample is offered, or may be.
__device__ inline void take_key(const JoinBlock& join, int slot, int sample, float key, int other) {
  const uint64_t neighbor = pack_neighbor(ordered_key(key), join.memory.ids()[other]);
  if (join.task.all_pairs) return offer(join, sample, neighbor);
  atomicMin(reinterpret_cast<unsigned long long*>(join.memory.nearest() + slot),
            static_cast<unsigned long long>(neighbor));
}

template <bool kProducts>
__device__ inline float key_of_samples(const JoinBlock& join, int a, int b) {
  const uint32_t* const ids = join.memory.ids();
  if constexpr (kProducts) return product_pair_key(join.task.rows, ids[a], ids[b]);
  return pair_key(join.task.rows, ids[a], ids[b]);
}

// Keys of the pairs that are needed, four threads to a pair.
template <bool kProducts, int kThreads>
__device__ inline void compute_needed(const JoinBlock& join, int count) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) / kRowThreads; i < count; i += kThreads / kRowThreads) {
    const int needed = join.memory.needed()[i];
    const LeftPair pair = join.memory.left()[needed & ~kOffered];
    const int sample = join.slots.sample_of(pair.slot);
    const float key = key_of_samples<kProducts>(join, sample, pair.other);
    if (threadIdx.x % kRowThreads != 0) continue;
    if ((needed & kOffered) != 0) {
      offer_unknown(join.task, join.memory.ids()[sample], join.memory.ends()[sample],
                    pack_neighbor(ordered_key(key), join.memory.ids()[pair.other]));
    } else {
      take_key(join, pair.slot, sample, key, pair.other);
    }
  }
}

// Keys of all pairs of the join, where there is no product or it leaves too many.
template <int kThreads>
__device__ inline void compute_all(const JoinBlock& join) {
  const JoinCounts& counts = join.counts();
  const int width = counts.end() - join.first_column;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) / kRowThreads; i < counts.fresh * width; i += kThreads / kRowThreads) {
    const int row = i / width;
    const int column = join.first_column + i % width;
    if (!counts.is_sample(column) || (column < counts.fresh && column <= row)) continue;
    const float key = key_of_samples<false>(join, row, column);
    if (threadIdx.x % kRowThreads != 0) continue;
    take_key(join, join.slots.new_slot(row, column >= counts.fresh), row, key, column);
    take_key(join, join.slots.slot_for_new(column), column, key, row);
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
