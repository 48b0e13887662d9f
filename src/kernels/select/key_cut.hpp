// Finds, by bisection, the cut that keeps the smallest entries a group of threads holds in registers.
//
// An entry is (key, row) and rows differ, so a cut exists for any number to keep. The range of keys is halved, counting
// the entries below its middle, until the count is in the wanted range; where more entries than that are equal, the
// rows decide in the same way. Sorted, reversed and equal values cost the same as random ones: at most 32 rounds for
// the keys and 32 for the rows, each one comparison for each entry and one sum over the group; about log2 of the
// number of entries for random keys.
//
// `Group` gives sum(int), min(uint32_t) and max(uint32_t) over its threads; a lone thread is a group too.
#pragma once

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"

#include <cstdint>

namespace kith {

inline constexpr uint32_t kNoRow = 0xFFFFFFFFu;    // of a place that holds no entry
inline constexpr uint32_t kLastRow = 0xFFFFFFFEu;  // no row is after it

// Keeps what is not after (key, row).
struct KeyCut {
  uint32_t key;
  uint32_t row;

  KITH_HOST_DEVICE constexpr bool keeps(uint32_t other_key, uint32_t other_row) const {
    return other_key < key || (other_key == key && other_row <= row);
  }
};

inline constexpr KeyCut kKeepAll{kNanKey, kLastRow};

// How many are to be kept.
struct KeepRange {
  int least;
  int most;
};

// A place without entry has kNanKey and kNoRow, and is never kept; there are at least range.least entries, and 0 <
// least <= most. not_after(i, row) says whether the row of keys[i] is not after `row`; the last row is row_limit at
// most.
template <typename Group, int kItems, typename NotAfter>
KITH_DEVICE inline KeyCut find_cut(Group& group, const uint32_t (&keys)[kItems], const NotAfter& not_after,
                                   uint32_t row_limit, const KeepRange& range) {
  uint32_t low = keys[0];
  uint32_t high = keys[0];
  KITH_UNROLL
  for (int i = 1; i < kItems; ++i) {
    low = keys[i] < low ? keys[i] : low;
    high = keys[i] > high ? keys[i] : high;
  }
  low = group.min(low);
  high = group.max(high);
  int before = 0;  // entries below `low`; always fewer than range.least
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    int count = 0;
    KITH_UNROLL
    for (int i = 0; i < kItems; ++i) count += keys[i] <= middle;
    count = group.sum(count);
    if (count < range.least) {
      before = count;
      low = middle + 1;
    } else if (count > range.most) {
      high = middle;
    } else {
      return {middle, kLastRow};
    }
  }
  uint32_t first = 0;
  uint32_t last = row_limit;
  while (first < last) {
    const uint32_t middle = first + (last - first) / 2;
    int count = 0;
    KITH_UNROLL
    for (int i = 0; i < kItems; ++i) count += keys[i] == low && not_after(i, middle);
    count = before + group.sum(count);
    if (count < range.least) {
      first = middle + 1;
    } else if (count > range.most) {
      last = middle;
    } else {
      return {low, middle};
    }
  }
  return {low, first};
}

}  // namespace kith
