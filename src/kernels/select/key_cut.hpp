// Finds, by bisection, the cut that keeps the smallest entries a group of threads holds in registers.
//
// An entry is (key, row) and rows differ, so a cut exists for any number to keep. The range of keys is halved, counting
// the entries below its middle, until the count is in the wanted range; where more entries than that are equal, the
// rows decide in the same way. Sorted, reversed and equal values cost the same as random ones: at most 32 rounds for
// the keys and 32 for the rows, each one comparison for each entry and one sum over the group; about log2 of the
// number of entries for random keys.
//
// `Group` gives threads(), and sum(int), min(uint32_t) and max(uint32_t) over them; a lone thread is a group too.
#pragma once

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"

#include <cstdint>

namespace kith {

inline constexpr uint32_t kNoRow = 0xFFFFFFFFu;    // marks an empty place
inline constexpr uint32_t kLastRow = 0xFFFFFFFEu;  // the largest valid row

// Keeps entries up to and including (key, row).
struct KeyCut {
  uint32_t key;
  uint32_t row;

  KITH_HOST_DEVICE constexpr bool keeps(uint32_t other_key, uint32_t other_row) const {
    return other_key < key || (other_key == key && other_row <= row);
  }
};

inline constexpr KeyCut kKeepAll{kNanKey, kLastRow};

// The wanted number of kept entries.
struct KeepRange {
  int least;
  int most;
};

// A key that at least range.least entries are not above: of the smallest of every thread, or of every quarter of a
// thread's entries, the largest, where there are enough of those; else the largest of all.
template <typename Group, int kItems>
KITH_DEVICE inline uint32_t upper_bound_key(Group& group, const uint32_t (&keys)[kItems], const uint32_t (&quarters)[4],
                                            int least) {
  if (least <= group.threads()) {
    const uint32_t a = quarters[0] < quarters[1] ? quarters[0] : quarters[1];
    const uint32_t b = quarters[2] < quarters[3] ? quarters[2] : quarters[3];
    return group.max(a < b ? a : b);
  }
  uint32_t high = 0;
  if (least <= 4 * group.threads()) {
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) high = quarters[i] > high ? quarters[i] : high;
  } else {
    KITH_UNROLL
    for (int i = 0; i < kItems; ++i) high = keys[i] > high ? keys[i] : high;
  }
  return group.max(high);
}

// A place without entry has kNanKey and a row after all others, and is never kept; there are at least range.least
// entries, and 0 < least <= most. rows.count(places, row) says how many of this thread's places (a bit for each) have a
// row that is not after `row`; the last row is row_limit at most.
template <typename Group, int kItems, typename Rows>
KITH_DEVICE inline KeyCut find_cut(Group& group, const uint32_t (&keys)[kItems], const Rows& rows, uint32_t row_limit,
                                   const KeepRange& range) {
  static_assert(kItems >= 4 && kItems <= 32, "a place is a bit of 32");
  uint32_t quarters[4] = {keys[0], keys[1], keys[2], keys[3]};
  KITH_UNROLL
  for (int i = 4; i < kItems; ++i) quarters[i % 4] = keys[i] < quarters[i % 4] ? keys[i] : quarters[i % 4];
  uint32_t low = quarters[0];
  KITH_UNROLL
  for (int i = 1; i < 4; ++i) low = quarters[i] < low ? quarters[i] : low;
  low = group.min(low);
  uint32_t high = upper_bound_key(group, keys, quarters, range.least);
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
  uint32_t equal = 0;
  KITH_UNROLL
  for (int i = 0; i < kItems; ++i) equal |= keys[i] == low ? 1u << i : 0u;
  uint32_t first = 0;
  uint32_t last = row_limit;
  while (first < last) {
    const uint32_t middle = first + (last - first) / 2;
    const int count = before + group.sum(rows.count(equal, middle));
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

// The rows of this thread's places, as an array.
template <int kItems, typename RowAt>
struct RowsAt {
  const RowAt& row_at;

  KITH_DEVICE int count(uint32_t places, uint32_t row) const {
    int total = 0;
    KITH_UNROLL
    for (int i = 0; i < kItems; ++i) total += (places >> i & 1) != 0 && row_at(i) <= row;
    return total;
  }
};

}  // namespace kith
