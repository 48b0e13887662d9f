// The entries of selection: an ordered key with a payload, compared by (key, payload), so that ties go to the smaller
// payload.
//
// With 32-bit payloads an entry is a packed neighbour of core/ordered_key.hpp; a 64-bit payload stands beside its key.
// Padding comes after every entry, a NaN's included.
#pragma once

#include "core/ordered_key.hpp"

#include <cstdint>

namespace kith {

struct WideEntry {
  uint64_t payload;
  uint32_t key;

  friend KITH_HOST_DEVICE constexpr bool operator<(const WideEntry& a, const WideEntry& b) {
    return a.key < b.key || (a.key == b.key && a.payload < b.payload);
  }
  friend KITH_HOST_DEVICE constexpr bool operator==(const WideEntry& a, const WideEntry& b) {
    return a.key == b.key && a.payload == b.payload;
  }
};

// How many of the sorted list[0 .. length) are smaller, by what `value` makes of an entry.
template <typename Index, typename Value>
KITH_HOST_DEVICE inline Index rank_in_list(const uint64_t* list, Index length, uint64_t entry, const Value& value) {
  Index low = 0;
  for (Index high = length; low < high;) {
    const Index middle = (low + high) / 2;
    if (value(list[middle]) < entry) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
template <typename Index>
KITH_HOST_DEVICE inline Index rank_in_list(const uint64_t* list, Index length, uint64_t entry) {
  return rank_in_list(list, length, entry, [](uint64_t other) { return other; });
}

template <typename Entry>
struct EntryOf;

template <>
struct EntryOf<uint64_t> {
  static KITH_HOST_DEVICE constexpr uint64_t padding() { return kPadding; }
  static KITH_HOST_DEVICE constexpr uint64_t make(uint32_t key, uint64_t payload) {
    return pack_neighbor(key, static_cast<uint32_t>(payload));
  }
  static KITH_HOST_DEVICE constexpr uint32_t key(uint64_t entry) { return ordered_of(entry); }
  static KITH_HOST_DEVICE constexpr int64_t payload(uint64_t entry) {
    return entry == kPadding ? -1 : static_cast<int64_t>(row_of(entry));
  }
};

template <>
struct EntryOf<WideEntry> {
  static KITH_HOST_DEVICE constexpr WideEntry padding() { return {~uint64_t{0}, kNanKey}; }
  static KITH_HOST_DEVICE constexpr WideEntry make(uint32_t key, uint64_t payload) { return {payload, key}; }
  static KITH_HOST_DEVICE constexpr uint32_t key(const WideEntry& entry) { return entry.key; }
  static KITH_HOST_DEVICE constexpr int64_t payload(const WideEntry& entry) {
    return static_cast<int64_t>(entry.payload);
  }
};

}  // namespace kith
