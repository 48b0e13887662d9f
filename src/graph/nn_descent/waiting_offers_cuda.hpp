// Offers that wait in an inbox before their keys are known, by the value of a product.
//
// Of the offers that meet in a place of an inbox the nearest by (key, row) stays. Mostly values tell which that is: the bounds
// of their keys (join_window.hpp) do not overlap. So a value waits in the place of a key, with a flag, and a key is computed
// where bounds overlap, and once for each offer that is still there when all joins are done. What stays does not
// depend on who came first: every comparison is right, whether by bounds or by keys.
#pragma once

#include "core/ordered_key.hpp"
#include "graph/nn_descent/join_offers_cuda.hpp"
#include "graph/pairs/pair_key_cuda.hpp"

#include <cstdint>

namespace kith {

// Bit 31 of a row is free (working_lists.hpp). Of what waits, kPadding apart: a value, not a key.
inline constexpr uint64_t kByValue = kOldFlag;

__device__ inline bool waits_by_value(uint64_t waiting) { return waiting != kPadding && (waiting & kByValue) != 0; }
__device__ inline uint32_t waiting_row(uint64_t waiting) { return row_of(waiting & ~kByValue); }

// Ordered keys.
struct KeyBounds {
  uint32_t below;
  uint32_t above;
};

__device__ inline KeyBounds bounds_of(const JoinTask& task, const JoinFacts& row, const JoinFacts& other, float value) {
  const JoinWindow window = pair_window(task.rows.kind, task.rows.cols, row, other);
  return {ordered_key(key_below(window, value)), ordered_key(key_above(window, value))};
}

// Of what waits in an inbox of the row with those facts.
__device__ inline KeyBounds waiting_bounds(const JoinTask& task, const JoinFacts& row, uint64_t waiting) {
  const uint32_t ordered = ordered_of(waiting);
  if (!waits_by_value(waiting)) return {ordered, ordered};
  return bounds_of(task, row, task.operands.facts[waiting_row(waiting)], key_of_ordered(ordered));
}

__device__ inline uint64_t swap_waiting(uint64_t* place, uint64_t waiting, uint64_t next) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(place), static_cast<unsigned long long>(waiting),
                   static_cast<unsigned long long>(next));
}

// Offers a neighbour, which is not in the list, by the value of its product. Returns false where keys must decide; then nothing
// has changed. Both have operands.
__device__ inline bool offer_value(const JoinTask& task, uint32_t row, const JoinFacts& facts, uint32_t neighbor,
                                   const JoinFacts& neighbor_facts, float value, uint64_t waiting) {
  uint64_t* const place = inbox_place(task, row, neighbor);
  const KeyBounds mine = bounds_of(task, facts, neighbor_facts, value);
#pragma unroll 1
  while (true) {
    if (waiting != kPadding) {
      if (waiting_row(waiting) == neighbor) return true;
      const KeyBounds theirs = waiting_bounds(task, facts, waiting);
      if (mine.below > theirs.above) return true;
      if (mine.above >= theirs.below) return false;
    }
    const uint64_t found = swap_waiting(place, waiting, pack_neighbor(ordered_key(value), neighbor) | kByValue);
    if (found == waiting) return true;
    waiting = found;
  }
}

// The same of a key that is known; four neighbouring threads offer together, and whole warps call it. Of the others' keys those
// are computed that bounds do not decide.
__device__ inline void offer_key(const JoinTask& task, bool offers, uint32_t row, const JoinFacts& facts, uint64_t neighbor) {
  uint64_t* const place = inbox_place(task, row, row_of(neighbor));
  bool open = offers;
  uint64_t waiting = open ? __ldcg(place) : kPadding;
#pragma unroll 1
  while (__any_sync(0xFFFFFFFFu, open)) {
    waiting = __shfl_sync(0xFFFFFFFFu, waiting, 0, kRowThreads);
    bool asks = false;  // the key of what waits
    if (open && waiting != kPadding) {
      if (!waits_by_value(waiting)) {
        open = neighbor < waiting;
      } else if (waiting_row(waiting) == row_of(neighbor)) {
        open = false;
      } else {
        const KeyBounds theirs = waiting_bounds(task, facts, waiting);
        open = ordered_of(neighbor) <= theirs.above;
        asks = open && ordered_of(neighbor) >= theirs.below;
      }
    }
    uint64_t next = neighbor;
    if (__any_sync(0xFFFFFFFFu, asks)) {
      const uint32_t other = asks ? waiting_row(waiting) : row;
      const float key = __shfl_sync(0xFFFFFFFFu, pair_key(task.rows, row, other), 0, kRowThreads);
      const uint64_t theirs = pack_neighbor(ordered_key(key), other);
      if (asks && theirs < neighbor) next = theirs;
    }
    uint64_t found = waiting;
    if (open && threadIdx.x % kRowThreads == 0) found = swap_waiting(place, waiting, next);
    found = __shfl_sync(0xFFFFFFFFu, found, 0, kRowThreads);
    open = open && found != waiting;
    waiting = found;
  }
}

}  // namespace kith
