// The beam of a walk: the best `capacity` places seen so far, by (key, place). The walk opens the nearest unopened ones
// and returns the beam.
//
// An entry is a u64: the key, the 31-bit place, and in the lowest bit whether it was opened. Entries are sorted: one
// comparison with the last rejects most offers (6 of 7), and a duplicate is found at its insertion point. The last
// entry only gets nearer, so a place rejected once stays rejected, and callers need not remember what they have
// offered.
#pragma once

#include "core/ordered_key.hpp"
#include "graph/search/graph/walk_rows.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace kith {

class Beam {
 public:
  // Memory for `capacity` entries, at least one.
  Beam(uint64_t* memory, int64_t capacity) : entries_(memory), capacity_(capacity) {}

  int64_t size() const { return size_; }
  uint32_t place(int64_t i) const { return static_cast<uint32_t>(entries_[i]) >> 1; }
  uint32_t key(int64_t i) const { return ordered_of(entries_[i]); }
  bool opened(int64_t i) const { return (entries_[i] & kOpened) != 0; }

  // Offers with larger keys are rejected.
  uint32_t largest_key() const { return size_ < capacity_ ? 0xFFFFFFFFU : key(size_ - 1); }
  // False if the beam is full of nearer entries.
  bool would_take(uint32_t key, uint32_t place) const {
    return size_ < capacity_ || pack_neighbor(key, place << 1) < (entries_[size_ - 1] & ~kOpened);
  }

  // Returns its position in the beam, or -1 if it was rejected.
  int64_t offer(uint32_t key, uint32_t place) {
    if (!would_take(key, place)) return -1;
    const uint64_t entry = pack_neighbor(key, place << 1);
    uint64_t* const at = entries_ + behind(entry);
    if (at != entries_ + size_ && (*at & ~kOpened) == entry) return -1;
    const int64_t number = at - entries_;
    size_ = std::min(size_ + 1, capacity_);
    std::memmove(at + 1, at, static_cast<size_t>(size_ - 1 - number) * sizeof(uint64_t));
    *at = entry;
    first_unopened_ = std::min(first_unopened_, number);
    return number;
  }

  // All entries before this one are opened.
  int64_t first_unopened() const { return first_unopened_; }
  // Opens the nearest unopened place and returns it; kNoWalkPlace if all are opened.
  uint32_t open_next() {
    while (first_unopened_ < size_ && opened(first_unopened_)) ++first_unopened_;
    if (first_unopened_ == size_) return kNoWalkPlace;
    entries_[first_unopened_] |= kOpened;
    return place(first_unopened_);
  }

 private:
  static constexpr uint64_t kOpened = 1;

  // The number of entries before it. Branchless, since the position is unpredictable: a binary search, whose last step
  // counts, so that its comparisons are independent.
  int64_t behind(uint64_t entry) const {
    constexpr int64_t kCounted = 16;
    const uint64_t* first = entries_;
    int64_t left = size_;
    while (left > kCounted) {
      const int64_t half = (left + 1) / 2;
      first += first[half - 1] < entry ? half : 0;
      left -= half;
    }
    int64_t before = first - entries_;
    for (int64_t i = 0; i < left; ++i) before += first[i] < entry ? 1 : 0;
    return before;
  }

  uint64_t* entries_;
  int64_t capacity_;
  int64_t size_ = 0;
  int64_t first_unopened_ = 0;  // all entries before it are opened
};

}  // namespace kith
