// Speculative steps of a walk, for few queries: these have the GPU to themselves and are bound by memory latency.
//
// Each step of a walk waits for a list and then for codes, which no amount of parallelism hides. So lists are compared
// ahead: not only those that the next step opens, but those of the nearest unopened places. One warp then takes as many
// steps as it has compared lists for, without another memory access, and requests more lists. The result is unchanged:
// a list compared ahead is used only when its place is opened, and unused work is discarded. (1M rows of 128 bytes,
// beam 48, width 2: 27 steps in about 10 rounds.)
//
// The beam's bound only tightens, so of a compared list only unseen entries before the last of the beam are kept, which
// are few. The stepping warp holds the beam in registers, at most 32 * kHeld entries. From an opened list it takes the
// kept entries that still qualify; the table of seen places holds exactly the places offered before. Each new entry
// counts the entries before it, each beam entry the new ones before it, and all move to these positions.
//
// Late in a walk, lists contribute few new entries, far down the beam. If all new entries of a step rank behind what
// the following step opens, both steps can be taken at once, and so on. Their new entries enter the beam together, with
// the same result.
#pragma once

#include "graph/search/walk/walk_start_cuda.hpp"

namespace kith {

template <int kWarps, int kHeld, bool kPacked = false>
class WalkAhead : public WalkStart<kWarps, false, kPacked> {
  using Start = WalkStart<kWarps, false, kPacked>;
  using Start::beam_;
  using Start::compare;
  using Start::counts_;
  using Start::hidden_;
  using Start::lane;
  using Start::see;
  using Start::start;
  using Start::sync;
  using Start::task_;
  using Start::thread;
  using Start::warp;
  using Start::was_seen;
  using Start::write;

 public:
  __device__ WalkAhead(const WalkTaskCuda& task, std::byte* memory, WalkCounts& counts)
      : Start(task, memory, counts),
        lists_(this->template at<uint64_t>(task.layout.ahead)),
        fresh_(this->template at<uint64_t>(task.layout.fresh)),
        slots_(this->template at<uint32_t>(task.layout.ranks)),
        list_counts_(this->template at<int>(task.layout.ahead_counts)),
        list_least_(reinterpret_cast<uint32_t*>(list_counts_ + walk_lists_kept(task.degree, kWarps))),
        slot_mask_(static_cast<uint32_t>(walk_lists_kept(task.degree, kWarps)) - 1U),
        turns_((task.degree + 31) / 32) {}

  KITH_DEVICE_INLINE void run(const DeviceRowsView& queries, int64_t query) {
    if (!start(queries, query)) return;
    if (warp() == 0) take_beam();
    for (;;) {
      if (warp() == 0) {
        while (step()) {
        }
        ask();
        KITH_WALK_PART_ENDS(ask)
      }
      sync();
      KITH_WALK_PART_ENDS(wait)
      const int asked = counts_.opened;
      if (asked == 0) break;
      compare_lists(asked);
      KITH_WALK_PART_ENDS(lists)
      sync();
      KITH_WALK_PART_ENDS(wait)
    }
    beam_.size = counts_.last;
    write(query);
    KITH_WALK_PART_ENDS(write)
  }

 private:
  static constexpr int kLists = walk_lists_ahead(kWarps);
  static constexpr uint32_t kNoSlot = 0xFFFFFFFFU;
  static constexpr uint32_t kNoKey = 0xFFFFFFFFU;         // larger than any entry's key
  static constexpr int kMostOpened = Start::kRound / 32;  // places opened at once

  // The beam entries of a lane, numbers i * 32 + lane; padding counts as opened. `slot`: that of its compared
  // list.
  struct Held {
    uint64_t entry[kHeld];
    uint32_t slot[kHeld];
  };
  __device__ static unsigned lanes_before() { return (1U << lane()) - 1U; }
  __device__ static bool opened(uint64_t entry) { return (entry & kOpenedBit) != 0; }
  __device__ static uint32_t place_of(uint64_t entry) { return row_of(entry) >> 1; }
  // Whether it needs a compared list before it can be opened; places of the tail have no list.
  __device__ bool lacks_list(uint64_t entry, uint32_t slot) const {
    return !opened(entry) && slot == kNoSlot && place_of(entry) < task_.places;
  }

  // Calls use(i, number) for the lane's entries for which is(i) holds; `number` counts such entries before it in the
  // beam. Returns their total. Called by all lanes.
  template <typename Is, typename Use>
  KITH_DEVICE_INLINE int visit(const Is& is, const Use& use) const {
    int before = 0;
    KITH_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const bool mine = is(i);
      const unsigned all = __ballot_sync(kAllLanes, mine);
      if (mine) use(i, before + __popc(all & lanes_before()));
      before += __popc(all);
    }
    return before;
  }

  KITH_DEVICE_INLINE void take_beam() {
    for (int i = 0; i < kHeld; ++i) {
      held_.entry[i] = i * 32 + lane() < beam_.size ? beam_.now[i * 32 + lane()] : kPadding;
      held_.slot[i] = kNoSlot;
    }
  }

  // Opens the places of the next step, and of the following ones that are already determined. False if a list of the
  // next step was not compared yet, or no place is left.
  KITH_DEVICE_INLINE bool step() {
    static_assert(3 * kMostOpened <= Start::kStaged);
    uint32_t* const chosen = this->staged_;        // slots of the nearest unopened places
    uint32_t* const keys = chosen + kMostOpened;   // of these places
    uint32_t* const brought = keys + kMostOpened;  // the smallest keys of their lists
    const int most = min(kMostOpened, Start::kRound / (32 * turns_));
    int ready = most;  // how many of these places come before the first without a compared list
    int numbers[kHeld];
    KITH_UNROLL
    for (int i = 0; i < kHeld; ++i) numbers[i] = most;
    const int closed = visit([&](int i) { return !opened(held_.entry[i]); },
                             [&](int i, int number) {
                               if (number >= most) return;
                               if (lacks_list(held_.entry[i], held_.slot[i])) ready = min(ready, number);
                               numbers[i] = number;
                               chosen[number] = held_.slot[i];
                               keys[number] = ordered_of(held_.entry[i]);
                               brought[number] = held_.slot[i] == kNoSlot ? kNoKey : list_least_[held_.slot[i]];
                             });
    ready = min(closed, __reduce_min_sync(kAllLanes, ready));
    if (closed == 0 || ready < min(closed, task_.width)) return false;
    __syncwarp();
    const int opens = opens_at_once(keys, brought, closed, ready);
    KITH_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      if (numbers[i] < opens) held_.entry[i] |= kOpenedBit;
    }
    KITH_WALK_PART_ENDS(choose)
    const int count = collect(chosen, opens);
    KITH_WALK_PART_ENDS(collect)
    for (int first = 0; first < count; first += 32) enter(fresh_ + first, min(32, count - first));
    KITH_WALK_PART_ENDS(enter)
    return true;
  }

  // How many of the `closed` nearest unopened places are opened by consecutive steps whose lists are among the `ready`
  // ones, without updating the beam in between.
  KITH_DEVICE_INLINE int opens_at_once(const uint32_t* keys, const uint32_t* brought, int closed, int ready) const {
    const int width = task_.width;
    int opens = min(ready, width);
    uint32_t nearest = kNoKey;  // smallest key in the lists so far
#pragma unroll 1
    for (int list = 0; opens < ready; opens = min(opens + width, ready)) {
#pragma unroll 1
      for (; list < opens; ++list) nearest = min(nearest, brought[list]);
      // A step with fewer places than its width also opens new entries, if there are any.
      const bool known =
          opens + width <= ready ? nearest > keys[opens + width - 1] : ready == closed && nearest == kNoKey;
      if (!known) break;
    }
    return opens;
  }

  // Collects the entries of these lists that enter the beam: eight lanes per list, since most lists have fewer.
  KITH_DEVICE_INLINE int collect(const uint32_t* chosen, int lists) const {
    constexpr int kTogether = 4;
    constexpr int kEach = 32 / kTogether;
    const uint64_t bound = beam_.bound();
    int count = 0;
#pragma unroll 1
    for (int first = 0; first < lists; first += kTogether) {
      const int list = first + lane() / kEach;
      const uint32_t slot = list < lists ? chosen[list] : kNoSlot;
      const int have = slot == kNoSlot ? 0 : list_counts_[slot];
      const int most = __reduce_max_sync(kAllLanes, have);
#pragma unroll 1
      for (int start = 0; start < most; start += kEach) {
        const int i = start + lane() % kEach;
        const uint64_t entry = i < have ? list_at(slot)[i] : kPadding;
        const bool takes = entry < bound && see(place_of(entry));
        const unsigned all = __ballot_sync(kAllLanes, takes);
        if (takes) fresh_[count + __popc(all & lanes_before())] = entry;
        count += __popc(all);
      }
    }
    __syncwarp();
    return count;
  }

  // Merges up to 32 fresh entries into the beam.
  KITH_DEVICE_INLINE void enter(uint64_t* fresh, int count) {
    uint64_t own = kPadding;
    int own_to = 0;
    int to[kHeld];
    for (;;) {
      own = lane() < count ? fresh[lane()] : kPadding;
      own_to = 0;
      int fresh_before = 0;
      bool twice = false;
      KITH_UNROLL
      for (int i = 0; i < kHeld; ++i) to[i] = i * 32 + lane();
#pragma unroll 4
      for (int j = 0; j < count; ++j) {
        const uint64_t entry = fresh[j];
        int behind = 0;
        KITH_UNROLL
        for (int i = 0; i < kHeld; ++i) {
          const bool before = !(held_.entry[i] < entry);
          to[i] += before ? 1 : 0;
          behind += __popc(__ballot_sync(kAllLanes, before));
        }
        if (lane() == j) own_to = 32 * kHeld - behind;
        fresh_before += entry < own ? 1 : 0;
        twice |= entry == own && j < lane();
      }
      // A duplicate that the table of seen places has forgotten is found at its insertion point.
      twice |= lane() < count && own_to < beam_.size && (beam_.now[own_to] & ~kOpenedBit) == own;
      own_to += fresh_before;
      if (!__any_sync(kAllLanes, twice)) break;
      const bool stays = lane() < count && !twice;
      const unsigned all = __ballot_sync(kAllLanes, stays);
      if (stays) fresh[__popc(all & lanes_before())] = own;
      count = __popc(all);
      __syncwarp();
    }
    __syncwarp();
    KITH_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      if (i * 32 + lane() < beam_.size) put(to[i], held_.entry[i], held_.slot[i]);
    }
    if (lane() < count) put(own_to, own, kNoSlot);
    beam_.size = min(beam_.capacity, beam_.size + count);
    __syncwarp();
    KITH_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const int at = i * 32 + lane();
      held_.entry[i] = at < beam_.size ? beam_.now[at] : kPadding;
      held_.slot[i] = at < beam_.size ? slots_[at] : kNoSlot;
    }
  }
  __device__ void put(int to, uint64_t entry, uint32_t slot) const {
    if (to >= beam_.capacity) return;
    beam_.now[to] = entry;
    slots_[to] = slot;
  }

  // Requests the lists of the nearest places without one, in the slots that were requested longest ago.
  KITH_DEVICE_INLINE void ask() {
    KITH_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      if (((held_.slot[i] - next_slot_) & slot_mask_) < kLists) held_.slot[i] = kNoSlot;
    }
    const int lacking = visit([&](int i) { return lacks_list(held_.entry[i], held_.slot[i]); },
                              [&](int i, int number) {
                                if (number >= task_.ahead) return;
                                const uint32_t slot = (next_slot_ + static_cast<uint32_t>(number)) & slot_mask_;
                                held_.slot[i] = slot;
                                list_counts_[slot] = 0;
                                list_least_[slot] = kNoKey;
                                counts_.places[number] = place_of(held_.entry[i]);
                                counts_.slots[number] = slot;
                              });
    next_slot_ = (next_slot_ + kLists) & slot_mask_;
    if (lane() != 0) return;
    counts_.opened = min(lacking, task_.ahead);
    counts_.last = beam_.size;
    counts_.near = beam_.bound();
  }

  // The entries of the compared list in a slot; room for turns_ * 32.
  __device__ uint64_t* list_at(uint32_t slot) const { return lists_ + static_cast<int>(slot) * turns_ * 32; }

  // Compares the requested lists and keeps the unseen entries that qualify for the beam, whose bound only
  // tightens. By all warps.
  KITH_DEVICE_INLINE void compare_lists(int asked) const {
    if (2 * asked * turns_ <= kWarps) return compare_parts<16>(asked);
    compare_parts<32>(asked);
  }
  // The same in parts of kPart entries, one per warp at a time.
  template <int kPart>
  KITH_DEVICE_INLINE void compare_parts(int asked) const {
    constexpr int kAhead = kPart / kCodesOfWarp;
    const uint64_t near = counts_.near;
    const int parts = turns_ * (32 / kPart);
    for (int unit = warp(); unit < asked * parts; unit += kWarps) {
      const int list = unit / parts;
      const int first = (unit - list * parts) * kPart;
      const int64_t edges = int64_t{counts_.places[list]} * task_.degree + first;
      uint32_t place = lane() < min(kPart, task_.degree - first) ? __ldg(task_.edges + edges + lane()) : kNoEdge;
      if (place == hidden_) place = kNoEdge;
      const uint32_t slot = counts_.slots[list];
      this->template compare<kAhead>(
          task_.codes, kPart, [&](int i) { return __shfl_sync(kAllLanes, place, i); },
          [&](bool there, uint32_t other, uint32_t key) {
            const uint64_t entry = there ? pack_neighbor(key, other << 1) : kPadding;
            const bool enters = entry < near && !was_seen(other);
            keep(slot, enters, entry);
            // It will probably be opened: prefetch its list.
            if (enters) ptx::prefetch(task_.edges + int64_t{other} * task_.degree);
          });
    }
  }
  // Appends the entries of some lanes to a list. Called by all lanes; other warps may append to the same list.
  KITH_DEVICE_INLINE void keep(uint32_t slot, bool enters, uint64_t entry) const {
    const unsigned all = __ballot_sync(kAllLanes, enters);
    if (all == 0) return;
    const uint32_t least = __reduce_min_sync(kAllLanes, enters ? ordered_of(entry) : kNoKey);
    int first = 0;
    if (lane() == 0) {
      first = atomicAdd(list_counts_ + slot, __popc(all));
      atomicMin(list_least_ + slot, least);
    }
    first = __shfl_sync(kAllLanes, first, 0);
    if (enters) list_at(slot)[first + __popc(all & lanes_before())] = entry;
  }

  uint64_t* const lists_;  // compared lists: slots of entries
  uint64_t* const fresh_;
  uint32_t* const slots_;  // of the beam's entries, while these move
  int* const list_counts_;
  uint32_t* const list_least_;  // keys
  const uint32_t slot_mask_;
  const int turns_;  // per list, of 32 entries
  uint32_t next_slot_ = 0;
  Held held_;
};

}  // namespace kith
