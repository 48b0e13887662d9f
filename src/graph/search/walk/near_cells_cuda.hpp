// The cells where a walk on a GPU begins, and their entries. For many queries a kernel ranks the cells in advance
// (rank_cells_cuda.cu); otherwise each block compares its query with all centres.
#pragma once

#include "graph/search/walk/next_beam_cuda.hpp"

namespace kith {

template <int kWarps, bool kFilters, bool kPacked>
class NearCells : public NextBeam<kWarps, kFilters, kPacked> {
 protected:
  using Beam = NextBeam<kWarps, kFilters, kPacked>;
  using Beam::compare;
  using Beam::counts_;
  using Beam::fresh;
  using Beam::kRound;
  using Beam::kThreads;
  using Beam::lane;
  using Beam::move_all;
  using Beam::ready_turn;
  using Beam::swap;
  using Beam::sync;
  using Beam::task_;
  using Beam::thread;
  using Beam::turn_;
  using Beam::warp;

  __device__ NearCells(const WalkTaskCuda& task, std::byte* memory, WalkCounts& counts) : Beam(task, memory, counts) {}

  // Inserts into the list of cells, which has no duplicates.
  KITH_DEVICE_INLINE void enter_cells(SortedList& near) {
    const FreshEntries from = fresh();
    sync();
    move_all(near, from, 0);
    if (thread() == 0) ready_turn(1 - turn_);
    sync();
    swap(near, near.size + *from.count);
    turn_ = 1 - turn_;
  }

  // The nearest cells for a batch of few queries: computes all keys at once. Each thread holds some of them; the
  // kNearCells-th smallest of a warp's per-thread minima bounds the result. False if too many keys are within the
  // bound, for example of equal centres.
  KITH_DEVICE_INLINE bool rank_cells_at_once(SortedList& near) {
    constexpr int kAhead = 8;
    auto* const keys = this->template at<uint32_t>(task_.layout.cell_keys);
    const int each = (task_.cells + kWarps - 1) / kWarps;
    const int first = warp() * each;
    this->template compare<kAhead>(
        task_.centres, max(0, min(each, task_.cells - first)), [&](int i) { return static_cast<uint32_t>(first + i); },
        [&](bool there, uint32_t cell, uint32_t key) {
          if (there) keys[cell] = key;
        });
    sync();
    KITH_WALK_PART_ENDS(cell_keys)
    uint32_t least = 0xFFFFFFFFU;
    for (int i = thread(); i < task_.cells; i += kThreads) least = min(least, keys[i]);
    uint32_t last = 0;
#pragma unroll 1
    for (int i = 0; i < kNearCells; ++i) {
      last = __reduce_min_sync(kAllLanes, least);
      const unsigned with_it = __ballot_sync(kAllLanes, least == last);
      if (lane() == __ffs(static_cast<int>(with_it)) - 1) least = 0xFFFFFFFFU;
    }
    if (lane() == 0) atomicMin(&counts_.bound, last);
    sync();
    const uint32_t bound = counts_.bound;
    const FreshEntries to = fresh();
    for (int i = thread(); i < task_.cells; i += kThreads) {
      if (keys[i] > bound) continue;
      const int place = atomicAdd(to.count, 1);
      if (place < kRound) to.entries[place] = pack_neighbor(keys[i], static_cast<uint32_t>(i) << 1);
    }
    sync();
    if (*to.count <= kRound) {
      enter_cells(near);
      return true;
    }
    sync();
    if (thread() == 0) *to.count = 0;
    sync();
    return false;
  }

  // The nearest cells, if no earlier kernel has found them.
  KITH_DEVICE_INLINE void rank_cells(SortedList& near) {
    // Small rounds first: their results bound the later ones.
    int round = 32;
    for (int first = 0; first < task_.cells; first += round, round = min(2 * round, kRound)) {
      const int some = min(round, task_.cells - first);
      const uint64_t bound = near.bound();
      const FreshEntries to = fresh();
      for (int start = warp() * 16; start < some; start += kWarps * 16) {
        const int from = first + start;
        compare(
            task_.centres, min(16, some - start), [&](int i) { return static_cast<uint32_t>(from + i); },
            [&](bool there, uint32_t cell, uint32_t key) {
              const uint64_t entry = pack_neighbor(key, cell << 1);
              to.add(there && entry < bound, entry);
            });
      }
      enter_cells(near);
    }
  }

  // Merges the nearest cells of the slices. False if the slices were not ranked.
  KITH_DEVICE_INLINE bool join_slices(SortedList& near, int64_t query) {
    const int count = task_.rank_slices * static_cast<int>(kNearCells);
    const auto* const ranked = reinterpret_cast<const uint64_t*>(task_.near_cells) + query * count;
    if (ranked[0] == kPadding) return false;
    const FreshEntries to = fresh();
    for (int i = thread(); i < count; i += kThreads) {
      const uint64_t entry = ranked[i];
      if (entry == kPadding) continue;
      to.entries[atomicAdd(to.count, 1)] = pack_neighbor(ordered_of(entry), row_of(entry) << 1);
    }
    enter_cells(near);
    return true;
  }

  // The cells whose entries start the beam.
  KITH_DEVICE_INLINE void find_cells(SortedList& near, int64_t query) {
    const bool some_ranked = task_.near_cells != nullptr;
    if (some_ranked && task_.rank_slices > 1) {
      if (join_slices(near, query)) return;
    }
    const uint32_t* const ranked =
        some_ranked && task_.rank_slices == 1 ? task_.near_cells + query * kNearCells : nullptr;
    if (ranked != nullptr && ranked[0] != kNotRanked) {
      near.size = static_cast<int>(min(static_cast<int64_t>(task_.cells), kNearCells));
      if (thread() < near.size) near.now[thread()] = ranked[thread()] << 1;
      sync();
    } else if (!walk_ranks_at_once(kWarps) || task_.cells > kMostWalkCells || !rank_cells_at_once(near)) {
      rank_cells(near);
    }
  }
  // The entries of these cells, concatenated; each of the first lanes has one cell.
  struct NearEntries {
    uint32_t first = 0;  // the cell's first, among all entries
    int begin = 0;       // the cell's first, among these cells' entries
    int count = 0;
    int total = 0;
  };
  KITH_DEVICE_INLINE NearEntries entries_of(const SortedList& near) const {
    NearEntries entries;
    if (lane() < near.size) {
      const uint32_t* const offsets = task_.entry_offsets + (row_of(near.now[lane()]) >> 1);
      entries.first = offsets[0];
      entries.count = static_cast<int>(offsets[1] - offsets[0]);
    }
    const int end = warp_inclusive(entries.count);
    entries.begin = end - entries.count;
    entries.total = __shfl_sync(kAllLanes, end, 31);
    return entries;
  }
  // The n-th of them; arbitrary if there are fewer. Called by all lanes.
  KITH_DEVICE_INLINE uint32_t entry_at(const NearEntries& entries, int n) const {
    uint32_t at = 0;
    KITH_UNROLL
    for (int i = 0; i < kNearCells; ++i) {
      const int begin = __shfl_sync(kAllLanes, entries.begin, i);
      const int count = __shfl_sync(kAllLanes, entries.count, i);
      const uint32_t first = __shfl_sync(kAllLanes, entries.first, i);
      if (n >= begin && n < begin + count) at = first + static_cast<uint32_t>(n - begin);
    }
    return n < entries.total ? task_.entries[at] : kNoEdge;
  }
};

}  // namespace kith
