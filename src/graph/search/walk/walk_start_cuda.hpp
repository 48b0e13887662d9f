// The start and end of a walk on a GPU, common to all kinds of steps: encodes the query, offers the entries of the
// nearest cells and the tail to the beam; writes the first places. Also a primitive of the steps: compares unseen
// places, and offers those near enough to the beam.
#pragma once

#include "cuda/ptx.hpp"
#include "graph/search/walk/near_cells_cuda.hpp"
#include "graph/search/walk/walk_results_cuda.hpp"

namespace kith {

template <int kWarps, bool kFilters, bool kPacked>
class WalkStart : public NearCells<kWarps, kFilters, kPacked> {
 protected:
  using Cells = NearCells<kWarps, kFilters, kPacked>;
  using Cells::beam_;
  using Cells::compare;
  using Cells::counts_;
  using Cells::enter_all;
  using Cells::entries_of;
  using Cells::entry_at;
  using Cells::filtered;
  using Cells::find_cells;
  using Cells::fresh;
  using Cells::fresh_kept;
  using Cells::kept_;
  using Cells::kRound;
  using Cells::kStaged;
  using Cells::kThreads;
  using Cells::lane;
  using Cells::last_;
  using Cells::load;
  using Cells::loaded;
  using Cells::ready_turn;
  using Cells::sync;
  using Cells::task_;
  using Cells::thread;
  using Cells::warp;
  using typename Cells::NearEntries;

  __device__ WalkStart(const WalkTaskCuda& task, std::byte* memory, WalkCounts& counts)
      : Cells(task, memory, counts),
        staged_(this->template at<uint32_t>(task.layout.staged) + warp() * (kStaged + kWalkOpened)) {}

  // False if a value of the query is not finite.
  KITH_DEVICE_INLINE bool start(const DeviceRowsView& queries, int64_t query) {
    if (task_.hidden != nullptr) hidden_ = task_.hidden[query];
    clear();
    if (!load(queries, query)) {
      if (thread() == 0) {
        atomicMin(task_.bad_query, static_cast<uint32_t>(query));
        task_.found_count[query] = 0;
      }
      return false;
    }
    sync();
    loaded();
    ptx::wait_for_kernel_before();  // the one that ranked the cells
    KITH_WALK_PART_ENDS(code)
    begin(query);
    return true;
  }

  struct Bounds {
    uint64_t beam;
    uint64_t kept;
    uint64_t near;  // lists of places before this entry are prefetched
  };
  KITH_DEVICE_INLINE Bounds bounds() const {
    const int soon = last_ + 1 + task_.width;
    return {beam_.bound(), filtered() ? kept_.bound() : 0, soon < beam_.size ? beam_.now[soon] : kPadding};
  }
  KITH_DEVICE_INLINE void offer(bool there, uint32_t place, uint32_t key, const Bounds& bounds) const {
    const uint64_t entry = pack_neighbor(key, place << 1);
    const bool enters = there && entry < bounds.beam;
    if (enters && entry < bounds.near && place < task_.places) {
      ptx::prefetch(task_.edges + int64_t{place} * task_.degree);
    }
    fresh().add(enters, entry);
    if (!filtered()) return;
    fresh_kept().add(there && entry < bounds.kept && filter_keeps(place), entry);
  }

  // Inserts a place into the table of seen places; returns whether it was missing. A single warp uses no atomics: lanes
  // that meet in a slot may overwrite each other's tags (racecheck reports it). A place is then forgotten, or reported
  // as new to two lanes; either way it is compared again, and the beam rejects duplicates.
  KITH_DEVICE_INLINE bool see(uint32_t place) const {
    const SeenTable& seen = task_.seen;
    const uint32_t mixed = seen.mixed(place);
    const uint32_t own = seen.slot(mixed);
    if constexpr (kWarps > 1) {
      auto* const slots = this->template at<uint32_t>(task_.layout.seen);
      return see_after(place, own, atomicCAS(slots + own, kNoEdge, place));
    } else {
      auto* const slots = this->template at<uint16_t>(task_.layout.seen);
      for (int probe = 0; probe < SeenTable::kProbes; ++probe) {
        uint16_t& slot = slots[seen.slot_after(own, probe)];
        const uint16_t tag = seen.tag(mixed, probe);
        const uint16_t before = slot;
        if (before == tag) return false;
        if (before != kNothingSeen) continue;
        slot = tag;
        return true;
      }
      slots[own] = seen.tag(mixed, 0);
    }
    return true;
  }

  // The result of see() for a place whose first slot contained `before`.
  KITH_DEVICE_INLINE bool see_after(uint32_t place, uint32_t own, uint32_t before) const {
    auto* const slots = this->template at<uint32_t>(task_.layout.seen);
    for (int probe = 1;; ++probe) {
      if (before == kNoEdge) return true;
      if (before == place) return false;
      if (probe == SeenTable::kProbes) break;
      before = atomicCAS(slots + task_.seen.slot_after(own, probe), kNoEdge, place);
    }
    atomicExch(slots + own, place);
    return true;
  }

  // Whether the table contains a place.
  KITH_DEVICE_INLINE bool was_seen(uint32_t place) const {
    static_assert(kWarps > 1);
    const auto* const slots = this->template at<uint32_t>(task_.layout.seen);
    const uint32_t own = task_.seen.slot(task_.seen.mixed(place));
    for (int probe = 0; probe < SeenTable::kProbes; ++probe) {
      const uint32_t there = slots[task_.seen.slot_after(own, probe)];
      if (there == place || there == kNoEdge) return there == place;
    }
    return false;
  }

  // Appends each lane's place, unless it is kNoEdge or was seen, to `count` staged ones; returns the new count.
  // Called by all lanes.
  KITH_DEVICE_INLINE int stage_unseen(uint32_t place, int count) const {
    const bool there = place != kNoEdge && place != hidden_ && see(place);
    const unsigned unseen = __ballot_sync(kAllLanes, there);
    if (there) staged_[count + __popc(unseen & ((1U << lane()) - 1U))] = place;
    __syncwarp();
    return count + __popc(unseen);
  }
  // Compares the staged places and offers them to the beam.
  KITH_DEVICE_INLINE void compare_staged(int count, const Bounds& bounds) const {
    const auto use = [&](bool is, uint32_t one, uint32_t key) { offer(is, one, key, bounds); };
    // The last turn has fewer codes.
    const int rest = count % (kCodesOfWarp * kCodesAhead);
    const int wide = rest <= 2 * kCodesOfWarp ? count - rest : count;
    compare(
        task_.codes, wide, [&](int i) { return staged_[i]; }, use);
    if (wide < count) {
      this->template compare<2>(
          task_.codes, count - wide, [&](int i) { return staged_[wide + i]; }, use);
    }
    __syncwarp();  // before the staged places are overwritten
  }

  // Compares the places of a round, place_of(i) for i < `some`, distributed over the warps.
  template <typename PlaceOf>
  KITH_DEVICE_INLINE void compare_round(int some, const Bounds& now, const PlaceOf& place_of) const {
    const int each = min(32, (some + kWarps - 1) / kWarps);
    int staged = 0;
    for (int start = warp() * each; start < some; start += kWarps * each) {
      const int i = start + lane();
      staged = stage_unseen(place_of(i, lane() < each && i < some), staged);
      if (staged + 32 <= kStaged && start + kWarps * each < some) continue;
      compare_staged(staged, now);
      staged = 0;
    }
  }

  KITH_DEVICE_INLINE void write(int64_t query) const {
    if (!kPacked && task_.results.ids != nullptr) {
      static_assert(kRound >= kMostWalkResults);
      if (warp() != 0) return;
      // Reuses the memory of fresh entries and of the beam's other half.
      auto* const keys = this->template at<uint32_t>(task_.layout.fresh);
      auto* const ends = reinterpret_cast<int*>(keys + kMostWalkResults);
      WalkResultsWriter(task_, beam_.next, keys, ends).write(query, beam_.now, beam_.size);
      return;
    }
    // Not a reference to one of the two: it would force the walk out of registers.
    const bool filtered = this->filtered();
    const uint64_t* const entries = filtered ? kept_.now : beam_.now;
    int size = filtered ? kept_.size : beam_.size;
    // Keeps of the collected places those that the beam has.
    while (filtered && size > 0 && (beam_.size == 0 || entries[size - 1] >> 1 > beam_.now[beam_.size - 1] >> 1)) --size;
    uint32_t* const out = task_.found + query * task_.most;
    for (int i = thread(); i < min(static_cast<int64_t>(size), task_.most); i += kThreads) {
      out[i] = row_of(entries[i]) >> 1;
      if (task_.found_keys != nullptr) task_.found_keys[query * task_.most + i] = ordered_of(entries[i]);
    }
    if (thread() == 0) task_.found_count[query] = static_cast<uint32_t>(size);
  }

  uint32_t* const staged_;
  uint32_t hidden_ = kNoEdge;  // a place that the walk skips

 private:
  static constexpr uint16_t kNothingSeen = 0xFFFF;

  KITH_DEVICE_INLINE void clear() {
    auto* const words = this->template at<uint4>(task_.layout.seen);
    const auto count = static_cast<int>(task_.seen.bytes() / 16);
    for (int i = thread(); i < count; i += kThreads) words[i] = make_uint4(~0U, ~0U, ~0U, ~0U);
    if (thread() != 0) return;
    ready_turn(0);
    ready_turn(1);
    counts_.bound = 0xFFFFFFFFU;
  }
  __device__ bool filter_keeps(uint32_t place) const {
    bool kept = false;
    const auto look = [&](uint32_t row) { kept = kept || (task_.kept_bits[row / 64] >> (row % 64) & 1) != 0; };
    if (place >= task_.rows.places) {
      look(static_cast<uint32_t>(task_.rows.graph_rows + place - task_.rows.places));
    } else {
      for (uint32_t i = task_.rows.offsets[place]; i < task_.rows.offsets[place + 1]; ++i) look(task_.rows.rows[i]);
    }
    return kept;
  }

  // Compares rows of the tail from `first` on.
  KITH_DEVICE_INLINE void compare_tail(int64_t first, const Bounds& now) const {
    const int some = static_cast<int>(min(static_cast<int64_t>(kRound), task_.tail_places - first));
    for (int start = warp() * 16; start < some; start += kWarps * 16) {
      compare(
          task_.tail, min(16, some - start), [&](int i) { return static_cast<uint32_t>(first + start + i); },
          [&](bool there, uint32_t number, uint32_t key) {
            offer(there, static_cast<uint32_t>(task_.places) + number, key, now);
          });
    }
  }

  // Offers the entries of the nearest cells and the tail to the beam.
  KITH_DEVICE_INLINE void begin(int64_t query) {
    SortedList near(this->template at<uint64_t>(task_.layout.cells), static_cast<int>(kNearCells));
    find_cells(near, query);
    KITH_WALK_PART_ENDS(nearest_cells)
    const NearEntries entries = entries_of(near);
    for (int first = 0; first < entries.total; first += kRound) {
      compare_round(min(kRound, entries.total - first), bounds(),
                    [&](int i, bool has) { return entry_at(entries, has ? first + i : entries.total); });
      sync();
      KITH_WALK_PART_ENDS(entries)
      enter_all();
      KITH_WALK_PART_ENDS(begin)
    }
    for (int64_t first = 0; first < task_.tail_places; first += kRound) {
      compare_tail(first, bounds());
      sync();
      enter_all();
    }
  }
};

}  // namespace kith
