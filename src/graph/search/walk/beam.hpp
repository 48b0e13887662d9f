// The best places that a walk has seen, by (key, place), so many of them: what it opens next, and what it returns.
//
// An entry is a u64: the key, the place, and in the lowest bit whether it was opened; places have 31 bits. Sorted, so
// that one comparison with the last entry refuses most of what is offered (6 of 7), and a place that is offered twice
// is found where it would enter. What was once behind the last entry stays out, since that only comes nearer: so who
// offers may forget what he has offered before.
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

  // No larger key is taken.
  uint32_t largest_key() const { return size_ < capacity_ ? 0xFFFFFFFFU : key(size_ - 1); }
  // False where the last entry is nearer.
  bool would_take(uint32_t key, uint32_t place) const {
    return size_ < capacity_ || pack_neighbor(key, place << 1) < (entries_[size_ - 1] & ~kOpened);
  }

  // Returns where it entered, -1 where it did not.
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

  // None before it is unopened.
  int64_t first_unopened() const { return first_unopened_; }
  // The nearest place that was not opened, which now is; kNoWalkPlace where all were.
  uint32_t open_next() {
    while (first_unopened_ < size_ && opened(first_unopened_)) ++first_unopened_;
    if (first_unopened_ == size_) return kNoWalkPlace;
    entries_[first_unopened_] |= kOpened;
    return place(first_unopened_);
  }

 private:
  static constexpr uint64_t kOpened = 1;

  // How many entries are before it. Nobody can foresee where it enters: there is no branch. The last ones are counted,
  // which waits for none of their comparisons.
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
  int64_t first_unopened_ = 0;  // none before it is unopened
};

}  // namespace kith
