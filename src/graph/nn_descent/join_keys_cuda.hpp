// From values of products to offers: the limit of a slot, whether a pair needs a canonical key, the keys, and what is
// offered.
#pragma once

#include "core/ordered_key.hpp"
#include "graph/nn_descent/join_memory_cuda.hpp"
#include "graph/nn_descent/join_offers_cuda.hpp"
#include "graph/pairs/pair_key_cuda.hpp"

#include <cstdint>

namespace kith {

enum class Need : uint8_t { none, key, offer };  // nothing, a key to compare, or one that is offered as it is

// A pair whose key is needed, as it waits: the slot, the place of the other sample, and whether it is offered as it is.
inline constexpr uint32_t kOffered = 0x80000000u;
__device__ inline uint32_t needed_pair(int slot, int other, Need need) {
  return static_cast<uint32_t>(slot) << 16 | static_cast<uint32_t>(other) | (need == Need::offer ? kOffered : 0);
}
__device__ inline int slot_of_needed(uint32_t pair) { return static_cast<int>(pair >> 16 & 0x7FFF); }
__device__ inline int other_of_needed(uint32_t pair) { return static_cast<int>(pair & 0xFFFF); }

// The value up to which a pair may enter the list of a slot's sample and, but where all pairs are offered, be its nearest,
// given the least one. Where there is no operand it is above every value.
__device__ inline float slot_limit(const JoinBlock& join, int sample, float least, const OperandFacts& others) {
  const JoinFacts facts = join.memory.facts()[sample];
  if (!(facts.scale > 0)) return HUGE_VALF;
  const JoinWindow window = join_window(join.task.rows.kind, join.task.rows.cols, facts, others);
  const float limit = key_limit(window, key_of_ordered(ordered_of(join.memory.ends()[sample])));
  // Past the list's end there is nothing to look for.
  if (join.task.all_pairs || !(least <= limit)) return limit;
  return fminf(limit, nearest_limit(window, least));
}

// What becomes of a pair that is alone in its slot, before its key is known: none where an offer would change nothing.
__device__ inline Need need_of(const JoinBlock& join, int sample, int other, float limit, float least,
                               const OperandFacts& others) {
  const JoinMemory& memory = join.memory;
  const uint32_t row = memory.ids()[sample];
  const uint32_t neighbor = memory.ids()[other];
  const uint32_t waiting = ordered_of(__ldcg(inbox_place(join.task, row, neighbor)));
  const Known known = is_known(join.task.known, row, neighbor);
  if (known == Known::yes) return Need::none;
  const Need need = known == Known::no ? Need::offer : Need::key;
  const bool sure = limit < HUGE_VALF && memory.facts()[other].scale > 0;
  if (join.task.all_pairs || !sure) return need;
  const JoinWindow window = join_window(join.task.rows.kind, join.task.rows.cols, memory.facts()[sample], others);
  return ordered_key(key_below(window, least)) > waiting ? Need::none : need;
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

// Called, not inlined: there are few, and what they take of registers and instructions the rest of a join would miss.
__device__ inline float key_of_samples(const JoinBlock& join, int a, int b) {
  return pair_key(join.task.rows, join.memory.ids()[a], join.memory.ids()[b]);
}

// Keys of the pairs that are needed, four threads to a pair.
template <int kThreads>
__device__ inline void compute_needed(const JoinBlock& join, int count) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) / kRowThreads; i < count; i += kThreads / kRowThreads) {
    const uint32_t pair = join.memory.needed()[i];
    const int sample = join.slots.sample_of(slot_of_needed(pair));
    const int other = other_of_needed(pair);
    const float key = key_of_samples(join, sample, other);
    if (threadIdx.x % kRowThreads != 0) continue;
    if ((pair & kOffered) != 0) {
      offer_unknown(join.task, join.memory.ids()[sample], join.memory.ends()[sample],
                    pack_neighbor(ordered_key(key), join.memory.ids()[other]));
    } else {
      take_key(join, slot_of_needed(pair), sample, key, other);
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
    const float key = key_of_samples(join, row, column);
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
