// The steps of a walk for few queries, which have the GPU to themselves and wait for memory above all.
//
// A walk of many steps, each of which waits for a list and then for codes, is slow however wide the GPU is. So lists
// are compared ahead: of the nearest places that were not opened, not those of the next step alone. One warp then takes
// as many steps as it has compared lists for, without another access to memory, and asks for more. What is found is the
// same: a list that was compared ahead is looked at only once its place is opened, and what was compared for nothing is
// forgotten. (1M rows of 128 bytes, beam 48, width 2: 27 steps in about 10 rounds.)
//
// That warp has the beam in registers, 32 * kHeld entries at most. Of a list that is opened it takes the entries before
// the last of the beam; the table of seen places knows those that it was offered before, and only those. Each of the
// others counts the entries before it, each entry of the beam the others before it, and all move there.
//
// Late in a walk lists bring little that is new, and that stands far behind. Where all that the lists of a step bring
// stands behind what the step after it would open, that step opens it: then both are taken at once, and others after
// them. What they bring enters the beam together; it is the best of all of it either way.
#pragma once

#include "graph/search/walk/walk_start_cuda.hpp"

namespace kith {

template <int kWarps, int kHeld>
class WalkAhead : public WalkStart<kWarps, false> {
  using Start = WalkStart<kWarps, false>;
  using Start::beam_;
  using Start::compare;
  using Start::counts_;
  using Start::hidden_;
  using Start::lane;
  using Start::see_two;
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
  static constexpr uint32_t kNoKey = 0xFFFFFFFFU;         // above those of all entries
  static constexpr int kMostOpened = Start::kRound / 32;  // at once

  // The entries of the beam that a lane has, number i * 32 + lane; padding counts as opened. `slot`: where its list was
  // compared.
  struct Held {
    uint64_t entry[kHeld];
    uint32_t slot[kHeld];
  };
  __device__ static unsigned lanes_before() { return (1U << lane()) - 1U; }
  __device__ static bool opened(uint64_t entry) { return (entry & kOpenedBit) != 0; }
  __device__ static uint32_t place_of(uint64_t entry) { return row_of(entry) >> 1; }
  // Whether its list would have to be compared before it is opened: places of the tail have none.
  __device__ bool lacks_list(uint64_t entry, uint32_t slot) const {
    return !opened(entry) && slot == kNoSlot && place_of(entry) < task_.places;
  }

  // Calls use(i, number) for the entries of the lane for which is(i) holds, with how many of these are before it in the
  // beam. Returns how many there are. All lanes call it.
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

  // Opens the places of the next step, and of those after it that are known by then. False where a list of the next one
  // was not compared yet, or no place is left.
  KITH_DEVICE_INLINE bool step() {
    static_assert(2 * kMostOpened <= Start::kStaged);
    uint32_t* const chosen = this->staged_;  // slots of the nearest places that are not opened
    uint32_t* const keys = chosen + kMostOpened;
    const int most = min(kMostOpened, Start::kRound / (32 * turns_));
    int ready = most;  // of these places, up to the first whose list was not compared
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
                             });
    ready = min(closed, __reduce_min_sync(kAllLanes, ready));
    if (closed == 0 || ready < min(closed, task_.width)) return false;
    __syncwarp();
    const int opens = opens_at_once(chosen, keys, closed, ready);
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

  // How many of the nearest places that are not opened, `closed` in all, are opened by the steps whose lists, `ready`,
  // are there, without a look at the beam between them.
  KITH_DEVICE_INLINE int opens_at_once(const uint32_t* chosen, const uint32_t* keys, int closed, int ready) const {
    int opens = min(ready, task_.width);
    if (opens == ready) return opens;
    const uint64_t bound = beam_.bound();
    uint32_t least = kNoKey;  // that the lists bring, as far as this lane has them
    for (int list = 0;; opens = min(opens + task_.width, ready)) {
      for (; list < opens; ++list) least = min(least, least_new(chosen[list], bound));
      if (opens == ready) return opens;
      const uint32_t nearest = __reduce_min_sync(kAllLanes, least);
      if (opens + task_.width <= ready) {
        if (nearest <= keys[opens + task_.width - 1]) return opens;
      } else if (ready < closed || nearest != kNoKey) {
        return opens;  // there is more to open than these
      }
    }
  }
  // The least key of a list's entries that would enter the beam, of the lane's.
  KITH_DEVICE_INLINE uint32_t least_new(uint32_t slot, uint64_t bound) const {
    uint32_t least = kNoKey;
    for (int turn = 0; turn < turns_ && slot != kNoSlot; ++turn) {
      const uint64_t entry = list_at(slot)[turn * 32 + lane()];
      if (entry < bound && !was_seen(place_of(entry))) least = min(least, ordered_of(entry));
    }
    return least;
  }

  // The entries of these lists that enter the beam: of its own slot for each lane.
  KITH_DEVICE_INLINE int collect(const uint32_t* chosen, int lists) const {
    const uint64_t bound = beam_.bound();
    int count = 0;
    for (int list = 0; list < lists; list += 2) {
      const uint32_t one = chosen[list];
      const uint32_t other = list + 1 < lists ? chosen[list + 1] : kNoSlot;
      for (int turn = 0; turn < turns_; ++turn) {
        const uint64_t a = one == kNoSlot ? kPadding : list_at(one)[turn * 32 + lane()];
        const uint64_t b = other == kNoSlot ? kPadding : list_at(other)[turn * 32 + lane()];
        bool takes[2] = {a < bound, b < bound};
        see_two({place_of(a), place_of(b)}, takes);
        const unsigned all_a = __ballot_sync(kAllLanes, takes[0]);
        const unsigned all_b = __ballot_sync(kAllLanes, takes[1]);
        const int before_b = count + __popc(all_a);
        if (takes[0]) fresh_[count + __popc(all_a & lanes_before())] = a;
        if (takes[1]) fresh_[before_b + __popc(all_b & lanes_before())] = b;
        count = before_b + __popc(all_b);
      }
    }
    __syncwarp();
    return count;
  }

  // Up to 32 fresh entries enter the beam.
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
      // One that the table of seen places has forgotten stands where it would enter.
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

  // Asks for the lists of the nearest places that lack them.
  KITH_DEVICE_INLINE void ask() {
    static_assert(kWalkAhead == 32, "slots are bits of a word");
    unsigned used = 0;
    KITH_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      if (!opened(held_.entry[i]) && held_.slot[i] != kNoSlot) used |= 1U << held_.slot[i];
    }
    used = __reduce_or_sync(kAllLanes, used);
    if (__popc(used) > kWalkAhead - kLists) {
      // Many of them stand far behind: what was compared is forgotten.
      used = 0;
      KITH_UNROLL
      for (int i = 0; i < kHeld; ++i) held_.slot[i] = kNoSlot;
    }
    const int lacking = visit([&](int i) { return lacks_list(held_.entry[i], held_.slot[i]); },
                              [&](int i, int number) {
                                if (number >= task_.ahead) return;
                                const uint32_t slot = free_slot(used, number);
                                held_.slot[i] = slot;
                                counts_.places[number] = place_of(held_.entry[i]);
                                counts_.slots[number] = slot;
                              });
    if (lane() != 0) return;
    counts_.opened = min(lacking, task_.ahead);
    counts_.last = beam_.size;
    counts_.near = beam_.bound();
  }
  // The n-th slot that is free, n being below kLists.
  __device__ static uint32_t free_slot(unsigned used, int n) {
    unsigned free = ~used;
    KITH_UNROLL
    for (int i = 0; i < kLists - 1; ++i) free = i < n ? free & (free - 1U) : free;
    return static_cast<uint32_t>(__ffs(static_cast<int>(free)) - 1);
  }

  // The entries of a list that was compared, or is: turns_ * 32.
  __device__ uint64_t* list_at(uint32_t slot) const { return lists_ + static_cast<int>(slot) * turns_ * 32; }

  // Compares the lists that were asked for. All warps.
  KITH_DEVICE_INLINE void compare_lists(int asked) const {
    if (2 * asked * turns_ <= kWarps) return compare_parts<16>(asked);
    compare_parts<32>(asked);
  }
  // The same by parts of kPart entries, one for a warp at a time.
  template <int kPart>
  KITH_DEVICE_INLINE void compare_parts(int asked) const {
    constexpr int kAhead = kPart / kCodesOfWarp;
    constexpr int kLanes = kCodeThreads / kAhead;  // that have the key of a code
    const uint64_t near = counts_.near;
    const int parts = turns_ * (32 / kPart);
    for (int unit = warp(); unit < asked * parts; unit += kWarps) {
      const int list = unit / parts;
      const int first = (unit - list * parts) * kPart;
      const int64_t edges = int64_t{counts_.places[list]} * task_.degree + first;
      uint32_t place = lane() < min(kPart, task_.degree - first) ? __ldg(task_.edges + edges + lane()) : kNoEdge;
      if (place == hidden_) place = kNoEdge;
      uint64_t* const to = list_at(counts_.slots[list]) + first;
      this->template compare<kAhead>(
          task_.codes, kPart, [&](int i) { return __shfl_sync(kAllLanes, place, i); },
          [&](bool there, uint32_t other, uint32_t key) {
            const uint64_t entry = there ? pack_neighbor(key, other << 1) : kPadding;
            if (lane() % kLanes == 0) to[lane() / kLanes] = entry;
            // It will be opened, likely, and its list be asked for.
            if (entry < near) ptx::prefetch(task_.edges + int64_t{other} * task_.degree);
          });
    }
  }

  uint64_t* const lists_;  // that were compared: slots of entries
  uint64_t* const fresh_;
  uint32_t* const slots_;  // of the entries of the beam, while these move
  const int turns_;        // of 32 entries, for a list
  Held held_;
};

}  // namespace kith
