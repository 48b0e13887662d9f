// Where offers to some rows wait until a join is over: slots for every row, the smallest packed neighbour of each.
// Which slot, and which of several offers stays, does not depend on who came first (join_rules.hpp).
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "core/ordered_key.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace kith {

class Inbox {
 public:
  Inbox(int64_t rows, int64_t slots, const Resources& resources)
      : slots_(slots), words_(rows * slots, "offers to the lists", resources) {
    std::fill(words_.begin(), words_.end(), kPadding);
  }

  int64_t slots() const { return slots_; }
  uint64_t* of(int64_t row) const { return words_.data() + row * slots_; }
  // The largest key that an offer may have to change a slot.
  uint32_t threshold(int64_t row, int64_t slot) const {
    return ordered_of(std::atomic_ref<uint64_t>(of(row)[slot]).load(std::memory_order_relaxed));
  }
  // On any thread.
  void offer(int64_t row, int64_t slot, uint64_t neighbor) const {
    const std::atomic_ref<uint64_t> word(of(row)[slot]);
    uint64_t there = word.load(std::memory_order_relaxed);
    while (neighbor < there && !word.compare_exchange_weak(there, neighbor, std::memory_order_relaxed)) {
    }
  }

 private:
  int64_t slots_;
  HostArray<uint64_t> words_;
};

}  // namespace kith
