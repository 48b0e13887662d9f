// Odd-size merging and sorting networks, as lists of compare-exchanges between numbered wires.
//
// "Billion-scale similarity search with GPUs" (2019), section 4.1, algorithms 1 and 2: Batcher's bitonic network on
// arrays padded to a power of two with elements that never move (before a left array, after a right one); comparisons
// with them are left out. A merge pairs mirrored wires first, so both inputs are sorted the same way, and every
// compare-exchange puts the smaller value on the lower wire. Merging takes ceil(log2(max(L, R))) + 1 parallel steps,
// sorting n wires (c^2 + c) / 2 with c = ceil(log2(n)).
#pragma once

#include "core/host_device.hpp"

namespace kith {

inline constexpr int kWarpLanes = 32;

// ceil(log2(n)), n > 0.
KITH_HOST_DEVICE constexpr int log2_ceil(int n) {
  int bits = 0;
  while ((1 << bits) < n) ++bits;
  return bits;
}

// Where the sort of n wires is split. The paper halves; a whole number of registers of 32 lanes is split between two
// registers, which is the same wherever n / 32 is even.
KITH_HOST_DEVICE constexpr int sort_split(int n) {
  return n > kWarpLanes && n % kWarpLanes == 0 ? n / (2 * kWarpLanes) * kWarpLanes : n / 2;
}

enum class MergeSide { left, right };

// Calls compare(low, high) for the wires first .. first + n - 1, whose values are within one half of a merge's output.
template <typename Compare>
constexpr void visit_merge_half(int first, int n, MergeSide side, const Compare& compare) {
  if (n <= 1) return;
  const int half = 1 << (log2_ceil(n) - 1);
  for (int i = 0; i < n - half; ++i) compare(first + i, first + i + half);
  const int left = side == MergeSide::left ? n - half : half;
  visit_merge_half(first, left, MergeSide::left, compare);
  visit_merge_half(first + left, n - left, MergeSide::right, compare);
}

// Merges the sorted wires first .. first + left - 1 with the sorted `right` wires that follow. Where only the smallest
// `left` values are wanted, the right half stays unsorted.
template <typename Compare>
constexpr void visit_merge(int first, int left, int right, bool sort_right, const Compare& compare) {
  const int pairs = left < right ? left : right;
  for (int i = 0; i < pairs; ++i) compare(first + left - 1 - i, first + left + i);
  visit_merge_half(first, left, MergeSide::left, compare);
  if (sort_right) visit_merge_half(first + left, right, MergeSide::right, compare);
}

template <typename Compare>
constexpr void visit_sort(int first, int n, const Compare& compare) {
  if (n <= 1) return;
  const int left = sort_split(n);
  visit_sort(first, left, compare);
  visit_sort(first + left, n - left, compare);
  visit_merge(first, left, n - left, true, compare);
}

}  // namespace kith
