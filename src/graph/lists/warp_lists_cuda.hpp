// A warp merges neighbours into a working list: it sorts them in its memory, leaves those that are new, and merges them
// in, all from shared memory or the list as it is stored. Flags (working_lists.hpp) move with their neighbours and
// order nothing.
#pragma once

#include "graph/lists/working_lists.hpp"
#include "kernels/select/device_warp_cuda.hpp"

#include <cstdint>

namespace kith {

// As sort_neighbors() below, of up to 32: one in a register of each lane.
__device__ inline void sort_few_neighbors(uint64_t* entries, int count) {
  __syncwarp();
  uint64_t mine = lane_index() < count ? entries[lane_index()] : kPadding;
  for (int size = 2; size <= count; size *= 2) {
    for (int apart = size / 2; apart > 0; apart /= 2) {
      const uint64_t other = __shfl_xor_sync(kAllLanes, mine, apart);
      const bool lower = (lane_index() & apart) == 0;
      const bool ascends = (lane_index() & size) == 0;
      const bool other_first = without_flag(other) < without_flag(mine);
      const bool mine_first = without_flag(mine) < without_flag(other);
      if (lower == ascends ? other_first : mine_first) mine = other;
    }
  }
  if (lane_index() < count) entries[lane_index()] = mine;
  __syncwarp();
}

// `count` is a power of two, padding at the end.
__device__ inline void sort_neighbors(uint64_t* entries, int count) {
  if (count <= 32) return sort_few_neighbors(entries, count);
  for (int size = 2; size <= count; size *= 2) {
    for (int apart = size / 2; apart > 0; apart /= 2) {
      __syncwarp();
      for (int i = lane_index(); i < count / 2; i += 32) {
        const int low = 2 * i - i % apart;
        const int high = low + apart;
        const uint64_t a = entries[low];
        const uint64_t b = entries[high];
        if ((without_flag(a) > without_flag(b)) == ((low & size) == 0)) {
          entries[low] = b;
          entries[high] = a;
        }
      }
    }
  }
  __syncwarp();
}

// Whether a sorted list has `bare`, a neighbour without a flag.
__device__ inline bool list_holds(const uint64_t* list, int64_t length, uint64_t bare) {
  const int64_t rank = rank_in_list(list, length, bare, [](uint64_t entry) { return without_flag(entry); });
  return rank < length && without_flag(list[rank]) == bare && list[rank] != kPadding;
}

// Leaves sorted entries that are neither twice there nor in the list; returns how many.
__device__ inline int leave_new(uint64_t* entries, int count, const uint64_t* list, int64_t length) {
  int left = 0;
  uint64_t before = kPadding;  // the last of the lanes before
  for (int first = 0; first < count; first += 32) {
    const int i = first + lane_index();
    const uint64_t entry = i < count ? entries[i] : kPadding;
    const uint64_t bare = without_flag(entry);
    uint64_t previous = __shfl_up_sync(kAllLanes, bare, 1);
    if (lane_index() == 0) previous = before;
    before = __shfl_sync(kAllLanes, bare, 31);
    const bool stays = entry != kPadding && bare != previous && !list_holds(list, length, bare);
    const unsigned staying = __ballot_sync(kAllLanes, stays);
    __syncwarp();  // all have read theirs before any is written to
    if (stays) entries[left + __popc(staying & ((1u << lane_index()) - 1))] = entry;
    left += __popc(staying);
    __syncwarp();
  }
  return left;
}

// Sorted entries that the list does not hold. From the back, so that what is read has not been written to.
__device__ inline void merge_into(uint64_t* list, int64_t length, const uint64_t* entries, int count) {
  for (int64_t first = (length - 1) / 32 * 32; first >= 0; first -= 32) {
    const int64_t place = first + lane_index();
    uint64_t value = 0;
    int taken = 0;  // entries among the first `place` of the merged list
    if (place < length) {
      int end = place < count ? static_cast<int>(place) : count;
      while (taken < end) {
        const int middle = (taken + end + 1) / 2;
        if (without_flag(entries[middle - 1]) < without_flag(list[place - middle])) {
          taken = middle;
        } else {
          end = middle - 1;
        }
      }
      value = list[place - taken];
      if (taken < count && without_flag(entries[taken]) < without_flag(value)) value = entries[taken];
    }
    __syncwarp();
    if (place < length) list[place] = value;
    __syncwarp();
    const bool before_all = count == 0 || without_flag(entries[0]) >= without_flag(value);
    if (__all_sync(kAllLanes, taken == 0 && (place >= length || before_all))) break;
  }
}

}  // namespace kith
