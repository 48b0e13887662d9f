// The beam of a walk on a GPU and its update: every entry of the beam and every fresh entry counts the entries before
// it and moves to that position in the other half of a double buffer. Duplicates, of places that the table of seen
// places has forgotten, are detected, and the update is repeated by a slower way. An entry that sees its duplicate does
// not move, so no two threads write to one position.
#pragma once

#include "core/ordered_key.hpp"
#include "graph/search/walk/walk_block_cuda.hpp"

namespace kith {

inline constexpr int kBeamBit = 1;  // for the beam, in WalkCounts::twice
inline constexpr int kKeptBit = 2;
inline constexpr uint64_t kOpenedBit = 1;
inline constexpr int kShortList = 128;  // longest list that several lanes search for one entry
inline constexpr int kNoFirst = 0x7FFFFFFF;

// A sorted list of best entries: the beam, the kept places, the nearest cells. Identical on all threads.
struct SortedList {
  uint64_t* now;
  uint64_t* next;
  int capacity;
  int size = 0;

  __device__ SortedList(uint64_t* memory, int most) : now(memory), next(memory + most), capacity(most) {}
  // Only smaller entries are accepted.
  __device__ uint64_t bound() const { return size < capacity ? kPadding : now[capacity - 1] & ~kOpenedBit; }
};

// Candidate entries for a list.
struct FreshEntries {
  uint64_t* entries;
  int* count;

  // Appends the entries of those lanes that have one; called by all lanes of a warp.
  KITH_DEVICE_INLINE void add(bool wants, uint64_t entry) const {
    const unsigned all = __ballot_sync(kAllLanes, wants);
    if (all == 0) return;
    int first = 0;
    if (lane_index() == 0) first = atomicAdd(count, __popc(all));
    first = __shfl_sync(kAllLanes, first, 0);
    if (wants) entries[first + __popc(all & ((1U << lane_index()) - 1U))] = entry;
  }
};

// kFilters: walks may have a filter.
template <int kWarps, bool kFilters, bool kPacked>
class NextBeam : public WalkBlock<kWarps, kPacked> {
 protected:
  using Block = WalkBlock<kWarps, kPacked>;
  using Block::counts_;
  using Block::kThreads;
  using Block::lane;
  using Block::sync;
  using Block::task_;
  using Block::thread;
  using Block::turn_;
  using Block::warp;

  __device__ NextBeam(const WalkTaskCuda& task, std::byte* memory, WalkCounts& counts)
      : Block(task, memory, counts),
        beam_(this->template at<uint64_t>(task.layout.beam), task.beam),
        kept_(this->template at<uint64_t>(task.layout.kept), task.kept),
        ranks_(this->template at<uint32_t>(task.layout.ranks)) {}

  __device__ bool filtered() const { return kFilters && task_.kept_bits != nullptr; }

  __device__ FreshEntries fresh() const {
    return {this->template at<uint64_t>(task_.layout.fresh), &counts_.fresh[0][turn_]};
  }
  __device__ FreshEntries fresh_kept() const {
    return {this->template at<uint64_t>(task_.layout.fresh_kept), &counts_.fresh[1][turn_]};
  }

  __device__ void ready_turn(int turn) const {
    counts_.fresh[0][turn] = counts_.fresh[1][turn] = 0;
    counts_.first[turn] = kNoFirst;
    counts_.twice[turn] = 0;
  }

  // The position of a fresh entry if there are no duplicates; claims it, or detects a duplicate. By one thread.
  KITH_DEVICE_INLINE void move_fresh(const SortedList& list, const FreshEntries& from, int count, int i,
                                     int bit) const {
    const uint64_t entry = from.entries[i];
    int to = 0;
    for (int high = list.size; to < high;) {
      const int middle = (to + high) / 2;
      if ((list.now[middle] & ~kOpenedBit) < entry) {
        to = middle + 1;
      } else {
        high = middle;
      }
    }
    bool twice = false;
#pragma unroll 4
    for (int j = 0; j < count; ++j) {
      to += from.entries[j] < entry ? 1 : 0;
      twice |= from.entries[j] == entry && j != i;
    }
    if (twice) {
      atomicOr(&counts_.twice[turn_], bit);
    } else {
      put(list, entry, to, bit);
    }
  }
  __device__ void put(const SortedList& list, uint64_t entry, int to, int bit) const {
    if (to >= list.capacity) return;
    list.next[to] = entry;
    if (bit == kBeamBit) atomicMin(&counts_.first[turn_], to);
  }

  // The same with several lanes per entry: faster than one thread each for short lists and many warps.
  KITH_DEVICE_INLINE void move_by_lanes(const SortedList& list, const FreshEntries& from, int bit) const {
    constexpr int kEntryLanes = kWarps > 8 ? 8 : 4;
    constexpr int kOfWarp = 32 / kEntryLanes;
    constexpr int kOneSame = 1 << 16;  // above all places
    const int count = *from.count;
    const int opened = bit == kBeamBit ? last_ : -1;
    const int part = lane() % kEntryLanes;
#pragma unroll 1
    for (int start = warp() * kOfWarp; start < list.size + count; start += kThreads / kEntryLanes) {
      const int i = start + lane() / kEntryLanes;
      const bool there = i < list.size + count;
      const bool is_fresh = there && i >= list.size;
      const uint64_t stored = !there ? kPadding : is_fresh ? from.entries[i - list.size] : list.now[i];
      const uint64_t entry = stored & ~kOpenedBit;
      int sum = 0;
#pragma unroll 4
      for (int j = part; j < count; j += kEntryLanes) {
        const uint64_t other = from.entries[j];
        sum += other < entry ? 1 : 0;
        sum += other == entry ? kOneSame : 0;
      }
      if (is_fresh) {
#pragma unroll 4
        for (int j = part; j < list.size; j += kEntryLanes) sum += list.now[j] < entry ? 1 : 0;
      }
      KITH_UNROLL
      for (int apart = 1; apart < kEntryLanes; apart *= 2) sum += __shfl_xor_sync(kAllLanes, sum, apart);
      const int before = sum % kOneSame;
      const int to = is_fresh ? before : i + before;
      const bool twice = there && sum / kOneSame != (is_fresh ? 1 : 0);
      const bool moves = there && part == 0 && !twice && to < list.capacity;
      if (moves) list.next[to] = i <= opened ? entry | kOpenedBit : stored;
      const int first = __reduce_min_sync(kAllLanes, moves && is_fresh ? to : kNoFirst);
      const bool some_twice = __any_sync(kAllLanes, twice);
      if (lane() != 0) continue;
      if (bit == kBeamBit && first != kNoFirst) atomicMin(&counts_.first[turn_], first);
      if (some_twice) atomicOr(&counts_.twice[turn_], bit);
    }
  }

  // Moves all entries, fresh ones included, to the other half. By all threads, between two barriers.
  KITH_DEVICE_INLINE void move_all(const SortedList& list, const FreshEntries& from, int bit) const {
    if (kWarps >= 4 && list.size <= kShortList) return move_by_lanes(list, from, bit);
    const int count = *from.count;
    const int opened = bit == kBeamBit ? last_ : -1;
#pragma unroll 1
    for (int i = thread(); i < list.size; i += kThreads) {
      const uint64_t entry = list.now[i] & ~kOpenedBit;
      int to = i;
      bool twice = false;
#pragma unroll 4
      for (int j = 0; j < count; ++j) {
        to += from.entries[j] < entry ? 1 : 0;
        twice |= from.entries[j] == entry;
      }
      if (!twice && to < list.capacity) list.next[to] = i <= opened ? entry | kOpenedBit : list.now[i];
      if (twice) atomicOr(&counts_.twice[turn_], bit);
    }
#pragma unroll 1
    for (int i = thread(); i < count; i += kThreads) move_fresh(list, from, count, i, bit);
  }
  __device__ void swap(SortedList& list, int size) const {
    uint64_t* const before = list.now;
    list.now = list.next;
    list.next = before;
    list.size = min(list.capacity, size);
  }

  // The same if there may be duplicates, which are found first. By all threads.
  KITH_DEVICE_INLINE void enter_with_care(SortedList& list, const FreshEntries& from, int bit) {
    const int count = *from.count;
    const int opened = bit == kBeamBit ? last_ : -1;
    sync();
    if (thread() == 0) counts_.doubles = 0;
    sync();
#pragma unroll 1
    for (int i = thread(); i < count; i += kThreads) {
      const uint64_t entry = from.entries[i];
      bool twice = false;
#pragma unroll 1
      for (int j = 0; j < i; ++j) twice |= from.entries[j] == entry;
#pragma unroll 1
      for (int j = 0; j < list.size; ++j) twice |= (list.now[j] & ~kOpenedBit) == entry;
      ranks_[i] = twice ? 1 : 0;
      if (twice) atomicAdd(&counts_.doubles, 1);
    }
    sync();
#pragma unroll 1
    for (int i = thread(); i < count + list.size; i += kThreads) {
      const bool is_fresh = i < count;
      if (is_fresh && ranks_[i] != 0) continue;
      uint64_t entry = is_fresh ? from.entries[i] : list.now[i - count];
      int to = is_fresh ? 0 : i - count;
#pragma unroll 1
      for (int j = 0; j < count; ++j) to += ranks_[j] == 0 && from.entries[j] < entry ? 1 : 0;
#pragma unroll 1
      for (int j = 0; is_fresh && j < list.size; ++j) to += list.now[j] < entry ? 1 : 0;
      if (!is_fresh && i - count <= opened) entry |= kOpenedBit;
      if (to < list.capacity) list.next[to] = entry;
    }
    sync();
    swap(list, list.size + count - counts_.doubles);
  }

  // Fresh entries enter the beam and the kept places. All threads call it, after a wait; they have waited for each
  // other when it returns.
  KITH_DEVICE_INLINE void enter_all() {
    const bool filtered = this->filtered();
    const FreshEntries to_beam = fresh();
    const FreshEntries to_kept = fresh_kept();
    move_all(beam_, to_beam, kBeamBit);
    if (filtered) move_all(kept_, to_kept, kKeptBit);
    if (thread() == 0) ready_turn(1 - turn_);
    sync();
    const int twice = counts_.twice[turn_];
    // A duplicate may already be in front of its insertion point, so the first place taken is no lower bound then.
    first_ = (twice & kBeamBit) != 0 ? 0 : min(counts_.first[turn_], last_ + 1);
    if ((twice & kBeamBit) != 0) {
      enter_with_care(beam_, to_beam, kBeamBit);
    } else {
      swap(beam_, beam_.size + *to_beam.count);
    }
    if (filtered) {
      if ((twice & kKeptBit) != 0) {
        enter_with_care(kept_, to_kept, kKeptBit);
      } else {
        swap(kept_, kept_.size + *to_kept.count);
      }
    }
    turn_ = 1 - turn_;
    last_ = -1;
  }

  SortedList beam_;
  SortedList kept_;
  uint32_t* const ranks_;
  int first_ = 0;  // all places of the beam before it are opened
  int last_ = -1;  // places of the beam up to this one are opened in this round
};

}  // namespace kith
