// Walks on a GPU (walk.hpp says what they find; this finds the same). A block has one query: from its values to its
// code, the nearest cells, their entries, and step after step until all places of the beam were opened. The host is not
// asked on the way.
//
// A step: every warp finds what is opened next, takes some of the edges, asks the seen table, and compares the codes of
// the others, eight threads a code, 16 bytes a load, four bytes a multiply-add. What is nearer than the last of the
// beam is fresh. Then every entry of the beam and every fresh one counts how many are before it, and moves there, into
// the beam's other half. Where one is there twice (the table has forgotten it) that is noticed, and done again with
// care.
//
// Cost of a step: two loads that wait for each other (lists, codes), and two waits of the block. The lists of fresh
// places that are likely to be opened next are asked for while the beam is made.
#include "graph/search/walk_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "graph/search/code_query_cuda.hpp"
#include "graph/search/compare_codes_cuda.hpp"

#include <cuda_runtime.h>

namespace kith {
namespace {

constexpr int kBeamBit = 1;  // for the beam, in Counts::twice
constexpr int kKeptBit = 2;
constexpr uint16_t kNothingSeen = 0xFFFF;
constexpr uint64_t kOpenedBit = 1;
constexpr int kShortList = 128;  // up to which warps look through a list

// Best entries so far, sorted: the beam, the kept places, the nearest cells. All threads know the same of it.
struct SortedList {
  uint64_t* now;
  uint64_t* next;
  int capacity;
  int size = 0;

  __device__ SortedList(uint64_t* memory, int most) : now(memory), next(memory + most), capacity(most) {}
  // Only smaller entries enter.
  __device__ uint64_t bound() const { return size < capacity ? kPadding : now[capacity - 1] & ~kOpenedBit; }
};

// Entries that want to enter a list.
struct FreshEntries {
  uint64_t* entries;
  int* count;

  // Of the lanes of a warp that want to; all lanes call it.
  KITH_DEVICE_INLINE void add(bool wants, uint64_t entry) const {
    const unsigned all = __ballot_sync(kAllLanes, wants);
    if (all == 0) return;
    int first = 0;
    if (lane_index() == 0) first = atomicAdd(count, __popc(all));
    first = __shfl_sync(kAllLanes, first, 0);
    if (wants) entries[first + __popc(all & ((1U << lane_index()) - 1U))] = entry;
  }
};

template <int kWarps>
class Walker {
 public:
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kRound = walk_round(kWarps);

  // What threads tell each other. Of two the one is used in a round while the other is made ready for the next.
  struct Counts {
    int fresh[2][2];  // entries for the beam, and for the kept places
    int first[2];     // the first place in the beam that an entry has taken
    int twice[2];     // lists in which an entry was found twice: bits
    int doubles;      // entries of a list that are there twice
    int opened;
    int last;
    uint32_t bound;                     // of the keys of the nearest cells
    uint32_t places[kWalkLargestStep];  // that are opened, where a step takes several rounds
  };

  __device__ Walker(const WalkTaskCuda& task, std::byte* memory, Counts& counts)
      : task_(task),
        memory_(memory),
        counts_(counts),
        beam_(at<uint64_t>(task.layout.beam), task.beam),
        kept_(at<uint64_t>(task.layout.kept), task.kept),
        staged_(at<uint32_t>(task.layout.staged) + warp() * (32 + kWalkOpened)),
        ranks_(at<uint32_t>(task.layout.ranks)),
        chunks_(static_cast<int>(task.stride / 16)),
        degree_inverse_((65536U + static_cast<uint32_t>(task.degree) - 1U) / static_cast<uint32_t>(task.degree)) {}

  KITH_DEVICE_INLINE void run(const DeviceRowsView& queries, int64_t query) {
    if (task_.hidden != nullptr) hidden_ = task_.hidden[query];
    clear();
    if (!load(queries, query)) {
      if (thread() == 0) {
        atomicMin(task_.bad_query, static_cast<uint32_t>(query));
        task_.found_count[query] = 0;
      }
      return;
    }
    sync();
    ptx::wait_for_kernel_before();  // which has ranked cells; and the next kernel may take its place
    walk(query);
    write(query);
  }

 private:
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int lane() { return thread() % 32; }
  __device__ static int warp() { return thread() / 32; }
  __device__ static void sync() {
    if constexpr (kWarps == 1) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
  template <typename T>
  __device__ T* at(int64_t offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }
  __device__ FreshEntries fresh() const { return {at<uint64_t>(task_.layout.fresh), &counts_.fresh[0][turn_]}; }
  __device__ FreshEntries fresh_kept() const {
    return {at<uint64_t>(task_.layout.fresh_kept), &counts_.fresh[1][turn_]};
  }

  KITH_DEVICE_INLINE void clear() {
    auto* const words = at<uint4>(task_.layout.seen);
    const auto count = static_cast<int>(task_.seen.bytes() / 16);
    for (int i = thread(); i < count; i += kThreads) words[i] = make_uint4(~0U, ~0U, ~0U, ~0U);
    if (thread() != 0) return;
    ready_turn(0);
    ready_turn(1);
    counts_.bound = 0xFFFFFFFFU;
  }
  __device__ void ready_turn(int turn) const {
    counts_.fresh[0][turn] = counts_.fresh[1][turn] = 0;
    counts_.first[turn] = 0x7FFFFFFF;
    counts_.twice[turn] = 0;
  }

  // The query's code; every warp knows all of it, the first one writes. False where a value is not finite.
  KITH_DEVICE_INLINE bool load(const DeviceRowsView& queries, int64_t query) {
    const CodedQuery coded(task_, queries, query);
    if (!coded.finite()) return false;
    bytes_ = coded.bytes();
    norm_ = coded.visit([&](int col, int level) {
      if (warp() != 0) return;
      if (bytes_) {
        at<int8_t>(task_.layout.query)[col] = static_cast<int8_t>(level);
      } else {
        at<int16_t>(task_.layout.query)[col] = static_cast<int16_t>(level);
      }
    });
    if (task_.kind == WalkKind::products) norm_ = 0;
    return true;
  }

  // Calls use(true, number, key) for `count` codes, as compare_codes() does.
  template <int kAhead = kCodesAhead, typename NumberOf, typename Use>
  KITH_DEVICE_INLINE void compare(const int8_t* codes, int count, const NumberOf& number_of, const Use& use) const {
    const CodeQueryCuda query{at<uint4>(task_.layout.query), bytes_, task_.kind == WalkKind::products, norm_};
    compare_codes<kAhead>(query, {codes, chunks_}, count, number_of,
                          [&](bool there, int, uint32_t number, uint32_t key) { use(there, number, key); });
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

  struct Bounds {
    uint64_t beam;
    uint64_t kept;
    uint64_t near;  // the lists of places before it are asked for
  };
  KITH_DEVICE_INLINE Bounds bounds() const {
    const int soon = last_ + 1 + task_.width;
    return {beam_.bound(), task_.kept_bits == nullptr ? 0 : kept_.bound(),
            soon < beam_.size ? beam_.now[soon] : kPadding};
  }
  KITH_DEVICE_INLINE void offer(bool there, uint32_t place, uint32_t key, const Bounds& bounds) const {
    const uint64_t entry = pack_neighbor(key, place << 1);
    const bool enters = there && entry < bounds.beam;
    if (enters && entry < bounds.near && place < task_.places) {
      ptx::prefetch(task_.edges + int64_t{place} * task_.degree);
    }
    fresh().add(enters, entry);
    if (task_.kept_bits == nullptr) return;
    fresh_kept().add(there && entry < bounds.kept && filter_keeps(place), entry);
  }

  // Whether a place was not seen; now it is.
  KITH_DEVICE_INLINE bool see(uint32_t place) const {
    const SeenTable& seen = task_.seen;
    const uint32_t mixed = seen.mixed(place);
    const uint32_t own = seen.slot(mixed);
    if constexpr (kWarps > 1) {
      auto* const slots = at<uint32_t>(task_.layout.seen);
      for (int probe = 0; probe < SeenTable::kProbes; ++probe) {
        const uint32_t before = atomicCAS(slots + seen.slot_after(own, probe), kNoEdge, place);
        if (before == kNoEdge) return true;
        if (before == place) return false;
      }
      slots[own] = place;
    } else {
      auto* const slots = at<uint16_t>(task_.layout.seen);
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

  // The unseen ones of the first `most` lanes' places, up to 32, each a place or kNoEdge, are compared and offered. All
  // lanes call it.
  KITH_DEVICE_INLINE void compare_unseen(uint32_t place, int most, const Bounds& bounds) const {
    const bool there = place != kNoEdge && place != hidden_ && see(place);
    if (kWarps == kWalkMostWarps && most <= 2 * kCodesOfWarp) {
      // So few that nothing is gained by closing the gaps.
      const uint32_t mine = there ? place : kNoEdge;
      compare<2>(
          task_.codes, 2 * kCodesOfWarp, [&](int i) { return __shfl_sync(kAllLanes, mine, i); },
          [&](bool is, uint32_t one, uint32_t key) { offer(is, one, key, bounds); });
      return;
    }
    const unsigned unseen = __ballot_sync(kAllLanes, there);
    if (there) staged_[__popc(unseen & ((1U << lane()) - 1U))] = place;
    __syncwarp();
    const auto number = [&](int i) { return staged_[i]; };
    const auto use = [&](bool is, uint32_t one, uint32_t key) { offer(is, one, key, bounds); };
    const int count = __popc(unseen);
    if (kWarps > 1 && count <= 2 * kCodesOfWarp) {
      compare<2>(task_.codes, count, number, use);
    } else {
      compare(task_.codes, count, number, use);
    }
    __syncwarp();  // before the staged places are others
  }

  // Where a fresh entry goes if no other is there twice; it takes that place, or notices that it is. By a thread.
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
    put(list, entry, to, bit);
    if (twice) atomicOr(&counts_.twice[turn_], bit);
  }
  // The same by a warp, which looks at 32 entries at a time: sooner for short lists.
  KITH_DEVICE_INLINE void move_fresh_by_warp(const SortedList& list, const FreshEntries& from, int count, int i,
                                             int bit) const {
    const uint64_t entry = from.entries[i];
    int to = 0;
    bool twice = false;
    for (int start = 0; start < list.size; start += 32) {
      const int j = start + lane();
      const uint64_t other = j < list.size ? list.now[j] & ~kOpenedBit : kPadding;
      to += __popc(__ballot_sync(kAllLanes, other < entry));
    }
    for (int start = 0; start < count; start += 32) {
      const int j = start + lane();
      const uint64_t other = j < count ? from.entries[j] : kPadding;
      to += __popc(__ballot_sync(kAllLanes, other < entry));
      twice |= other == entry && j != i;
    }
    twice = __any_sync(kAllLanes, twice);
    if (lane() != 0) return;
    put(list, entry, to, bit);
    if (twice) atomicOr(&counts_.twice[turn_], bit);
  }
  __device__ void put(const SortedList& list, uint64_t entry, int to, int bit) const {
    if (to >= list.capacity) return;
    list.next[to] = entry;
    if (bit == kBeamBit) atomicMin(&counts_.first[turn_], to);
  }

  // All entries of the list, and fresh ones, move to the other half. All threads, between two waits.
  KITH_DEVICE_INLINE void move_all(const SortedList& list, const FreshEntries& from, int bit) const {
    const int count = *from.count;
    const int opened = bit == kBeamBit ? last_ : -1;
    for (int i = thread(); i < list.size; i += kThreads) {
      const uint64_t entry = list.now[i] & ~kOpenedBit;
      int to = i;
      bool twice = false;
#pragma unroll 4
      for (int j = 0; j < count; ++j) {
        to += from.entries[j] < entry ? 1 : 0;
        twice |= from.entries[j] == entry;
      }
      if (to < list.capacity) list.next[to] = i <= opened ? entry | kOpenedBit : list.now[i];
      if (twice) atomicOr(&counts_.twice[turn_], bit);
    }
    if (kWarps >= 4 && list.size <= kShortList) {
      // Those warps first that have no entries of the list.
      for (int i = kWarps - 1 - warp(); i < count; i += kWarps) move_fresh_by_warp(list, from, count, i, bit);
    } else {
      for (int i = thread(); i < count; i += kThreads) move_fresh(list, from, count, i, bit);
    }
  }
  __device__ void swap(SortedList& list, int size) const {
    uint64_t* const before = list.now;
    list.now = list.next;
    list.next = before;
    list.size = min(list.capacity, size);
  }

  // The same where entries may be there twice: which are is found first. All threads.
  KITH_DEVICE_INLINE void enter_with_care(SortedList& list, const FreshEntries& from, int bit) {
    const int count = *from.count;
    const int opened = bit == kBeamBit ? last_ : -1;
    sync();
    if (thread() == 0) counts_.doubles = 0;
    sync();
    for (int i = thread(); i < count; i += kThreads) {
      const uint64_t entry = from.entries[i];
      bool twice = false;
      for (int j = 0; j < i; ++j) twice |= from.entries[j] == entry;
      for (int j = 0; j < list.size; ++j) twice |= (list.now[j] & ~kOpenedBit) == entry;
      ranks_[i] = twice ? 1 : 0;
      if (twice) atomicAdd(&counts_.doubles, 1);
    }
    sync();
    for (int i = thread(); i < count + list.size; i += kThreads) {
      const bool is_fresh = i < count;
      if (is_fresh && ranks_[i] != 0) continue;
      uint64_t entry = is_fresh ? from.entries[i] : list.now[i - count];
      int to = is_fresh ? 0 : i - count;
      for (int j = 0; j < count; ++j) to += ranks_[j] == 0 && from.entries[j] < entry ? 1 : 0;
      for (int j = 0; is_fresh && j < list.size; ++j) to += list.now[j] < entry ? 1 : 0;
      if (!is_fresh && i - count <= opened) entry |= kOpenedBit;
      if (to < list.capacity) list.next[to] = entry;
    }
    sync();
    swap(list, list.size + count - counts_.doubles);
  }

  // Fresh entries enter the beam and the kept places. All threads call it, after a wait; they have waited for each
  // other when it returns. meanwhile() is called before that wait.
  template <typename Meanwhile>
  KITH_DEVICE_INLINE void enter_all(const Meanwhile& meanwhile) {
    const bool filtered = task_.kept_bits != nullptr;
    const FreshEntries to_beam = fresh();
    const FreshEntries to_kept = fresh_kept();
    move_all(beam_, to_beam, kBeamBit);
    if (filtered) move_all(kept_, to_kept, kKeptBit);
    if (thread() == 0) ready_turn(1 - turn_);
    meanwhile();
    sync();
    const int twice = counts_.twice[turn_];
    // Who is there twice may stand before what it is put before: the first place that was taken is no bound then.
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
  // Into the list of cells, none of which is there twice.
  KITH_DEVICE_INLINE void enter_cells(SortedList& near) {
    const FreshEntries from = fresh();
    sync();
    move_all(near, from, 0);
    if (thread() == 0) ready_turn(1 - turn_);
    sync();
    swap(near, near.size + *from.count);
    turn_ = 1 - turn_;
  }

  // The nearest cells of one of few queries: all keys at once. In each warp of threads with some keys each, the
  // kNearCells-th of their least keys bounds the keys that are wanted. False where too many are within the bound, as of
  // equal centres.
  KITH_DEVICE_INLINE bool rank_cells_at_once(SortedList& near) {
    constexpr int kAhead = 8;
    auto* const keys = at<uint32_t>(task_.layout.cell_keys);
    const int each = (task_.cells + kWarps - 1) / kWarps;
    const int first = warp() * each;
    compare<kAhead>(
        task_.centres, max(0, min(each, task_.cells - first)), [&](int i) { return static_cast<uint32_t>(first + i); },
        [&](bool there, uint32_t cell, uint32_t key) {
          if (there) keys[cell] = key;
        });
    sync();
    uint32_t least = 0xFFFFFFFFU;
    for (int i = thread(); i < task_.cells; i += kThreads) least = min(least, keys[i]);
    int before = 0;
    KITH_UNROLL
    for (int i = 0; i < 32; ++i) {
      const uint32_t other = __shfl_sync(kAllLanes, least, i);
      before += other < least || (other == least && i < lane()) ? 1 : 0;
    }
    if (before == kNearCells - 1) atomicMin(&counts_.bound, least);
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

  // The nearest cells, where no kernel before has found them.
  KITH_DEVICE_INLINE void rank_cells(SortedList& near) {
    // Small rounds first: they bound those after them.
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

  // The cells whose entries begin the beam.
  KITH_DEVICE_INLINE void find_cells(SortedList& near, int64_t query) {
    const uint32_t* const ranked = task_.near_cells == nullptr ? nullptr : task_.near_cells + query * kNearCells;
    if (ranked != nullptr && ranked[0] != kNotRanked) {
      near.size = static_cast<int>(min(static_cast<int64_t>(task_.cells), kNearCells));
      if (thread() < near.size) near.now[thread()] = ranked[thread()] << 1;
      sync();
    } else if (kWarps < kWalkMostWarps || task_.cells > kMostWalkCells || !rank_cells_at_once(near)) {
      rank_cells(near);
    }
  }
  // The entries of these cells, one cell's behind the other's: each of the first lanes has a cell.
  struct NearEntries {
    uint32_t first = 0;  // of the cell, among all entries
    int begin = 0;       // among those of these cells
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
  // The n-th of them; any where there are fewer. All lanes call it.
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
  // The n-th edge of these places; kNoEdge where there is none.
  __device__ uint32_t edge_at(const uint32_t* opened, int n) const {
    const auto list = static_cast<int>(static_cast<uint32_t>(n) * degree_inverse_ >> 16);  // n / degree, n being small
    const uint32_t from = opened[list];
    if (from >= task_.places) return kNoEdge;  // of the tail
    return __ldg(task_.edges + int64_t{from} * task_.degree + (n - list * task_.degree));
  }

  // An edge that is likely to be looked at in the next step, and the place that it is of.
  struct NextEdge {
    uint32_t from = kNoEdge;
    uint32_t to = kNoEdge;
  };
  // The n-th edge of these places, as edge_at(), which may have been guessed.
  __device__ uint32_t edge_at(const uint32_t* opened, int n, const NextEdge& next) const {
    const auto list = static_cast<int>(static_cast<uint32_t>(n) * degree_inverse_ >> 16);
    return opened[list] == next.from ? next.to : edge_at(opened, n);
  }
  // The n-th edge of the places that are likely to be opened next: the nearest of the fresh entries and of those in the
  // beam behind what was opened (`later`). Its load is under way while the beam is made. By a warp, between two waits.
  KITH_DEVICE_INLINE NextEdge guess(int n, const uint32_t* later, int later_count) const {
    const FreshEntries from = fresh();
    const int count = min(*from.count, 32 - later_count);
    uint64_t entry = kPadding;
    if (lane() < count) {
      entry = from.entries[lane()];
    } else if (lane() >= 32 - later_count) {
      entry = beam_.now[later[lane() - (32 - later_count)]];
    }
    const auto list = static_cast<int>(static_cast<uint32_t>(n) * degree_inverse_ >> 16);
    NextEdge next;
    uint32_t key = ordered_of(entry);
    for (int i = 0; i < task_.width; ++i) {
      const uint32_t least = __reduce_min_sync(kAllLanes, key);
      const int who = __ffs(static_cast<int>(__ballot_sync(kAllLanes, key == least))) - 1;
      const uint32_t place = __shfl_sync(kAllLanes, row_of(entry) >> 1, who);
      if (list == i && least != 0xFFFFFFFFU) next.from = place;
      if (lane() == who) key = 0xFFFFFFFFU;
    }
    if (next.from < task_.places) {
      next.to = __ldg(task_.edges + int64_t{next.from} * task_.degree + (n - list * task_.degree));
    }
    return next;
  }
  // Asks for the code of that edge, where it was not seen.
  __device__ void ask_for(const NextEdge& next) const {
    if (next.to == kNoEdge || at<uint32_t>(task_.layout.seen)[task_.seen.slot(task_.seen.mixed(next.to))] == next.to) {
      return;
    }
    const int8_t* const code = task_.codes + int64_t{next.to} * task_.stride;
    for (int at_byte = 0; at_byte < task_.stride; at_byte += 128) ptx::prefetch(code + at_byte);
  }

  // Compares rows of the tail, from the first-th on.
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

  // Chooses what is opened next, up to the width, and puts it where `to` is, and behind it where up to `more` stand in
  // the beam that are next; returns how many are opened. last_ is where the last of these stands: all up to there are opened, and marked when
  // the beam moves. By a warp.
  KITH_DEVICE_INLINE int open(uint32_t* to, int more, int& chosen_count) {
    chosen_count = 0;
    for (int start = first_; start < beam_.size && chosen_count < task_.width + more; start += 32) {
      const int i = start + lane();
      const uint64_t entry = i < beam_.size ? beam_.now[i] : kOpenedBit;
      const bool closed = (entry & kOpenedBit) == 0;
      const unsigned all = __ballot_sync(kAllLanes, closed);
      const int number = chosen_count + __popc(all & ((1U << lane()) - 1U));
      if (closed && number < task_.width + more) {
        to[number] = number < task_.width ? row_of(entry) >> 1 : static_cast<uint32_t>(i);
      }
      const unsigned some = __ballot_sync(kAllLanes, closed && number < task_.width);
      if (some != 0) last_ = start + 31 - __clz(static_cast<int>(some));
      chosen_count += __popc(all);
    }
    __syncwarp();
    chosen_count = min(chosen_count, task_.width + more);
    return min(chosen_count, task_.width);
  }
  // The same where a step takes several rounds: one warp chooses for all.
  KITH_DEVICE_INLINE int open_for_all() {
    if (warp() == 0) {
      int all = 0;
      const int opened = open(counts_.places, 0, all);
      if (lane() == 0) {
        counts_.opened = opened;
        counts_.last = last_;
      }
    }
    sync();
    last_ = counts_.last;
    return counts_.opened;
  }

  // Rounds until all places of the beam were opened: entries first, then the tail, then edges.
  KITH_DEVICE_INLINE void walk(int64_t query) {
    SortedList near(at<uint64_t>(task_.layout.cells), static_cast<int>(kNearCells));
    find_cells(near, query);
    const NearEntries near_entries = entries_of(near);
    const int entries = near_entries.total;
    const int lists = min(kRound / task_.degree, kWalkOpened);      // of a round
    const bool by_itself = task_.width <= lists;                    // every warp knows what is opened
    // Few queries have the memory to themselves: lists and codes of the next step are asked for before it is known.
    // Each lane has one edge of a step then.
    const bool guesses =
        kWarps == kWalkMostWarps && 2 * task_.width <= kWalkOpened && task_.width * task_.degree <= kThreads;
    uint32_t* const own = staged_ + 32;
    NextEdge next;
    int entry = 0;
    int64_t tail = 0;
    int opened = 0;
    int open_count = 0;
    int chosen = 0;  // opened, and guessed to be next
    for (;;) {
      const bool enters = entry < entries;
      const bool has_tail = !enters && tail < task_.tail_places;
      if (!enters && !has_tail && opened >= open_count) {
        open_count = by_itself ? open(own, guesses ? task_.width : 0, chosen) : open_for_all();
        if (open_count == 0) return;
        opened = 0;
      }
      const Bounds now = bounds();
      if (has_tail) {
        compare_tail(tail, now);
        tail += kRound;
      } else {
        const int some = enters ? min(kRound, entries - entry) : min(lists, open_count - opened) * task_.degree;
        // Guesses are of the same lane in every step.
        const int spread = guesses && !enters ? task_.width * task_.degree : some;
        const int each = min(32, (spread + kWarps - 1) / kWarps);
        const uint32_t* const from = by_itself ? own : counts_.places + opened;
        for (int start = warp() * each; start < some; start += kWarps * each) {
          const int i = start + lane();
          const bool has = lane() < each && i < some;
          uint32_t place = kNoEdge;
          if (enters) {
            place = entry_at(near_entries, has ? entry + i : entries);
          } else if (has) {
            place = guesses ? edge_at(from, i, next) : edge_at(from, i);
          }
          compare_unseen(place, each, now);
        }
        if (enters) {
          entry += kRound;
        } else {
          opened += lists;
        }
      }
      sync();
      if (guesses && !enters && !has_tail) {
        const int each = (task_.width * task_.degree + kWarps - 1) / kWarps;
        next = guess(min(warp() * each + lane(), task_.width * task_.degree - 1), own + task_.width,
                     max(0, chosen - task_.width));
        enter_all([&] {
          if (lane() < each) ask_for(next);
        });
      } else {
        enter_all([] {});
      }
    }
  }

  KITH_DEVICE_INLINE void write(int64_t query) const {
    // No reference to one of both: the compiler would keep the walk in memory for it.
    const bool filtered = task_.kept_bits != nullptr;
    const uint64_t* const entries = filtered ? kept_.now : beam_.now;
    const int size = filtered ? kept_.size : beam_.size;
    uint32_t* const out = task_.found + query * task_.most;
    for (int i = thread(); i < min(static_cast<int64_t>(size), task_.most); i += kThreads) {
      out[i] = row_of(entries[i]) >> 1;
    }
    if (thread() == 0) task_.found_count[query] = static_cast<uint32_t>(size);
  }

  const WalkTaskCuda& task_;
  std::byte* const memory_;
  Counts& counts_;
  SortedList beam_;
  SortedList kept_;
  uint32_t* const staged_;
  uint32_t* const ranks_;
  const int chunks_;
  const uint32_t degree_inverse_;  // to divide by the degree
  int turn_ = 0;                   // of the counts
  int first_ = 0;                  // no place of the beam before it is unopened
  int last_ = -1;                  // places of the beam up to it are opened in this round
  uint32_t hidden_ = kNoEdge;      // a place that the walk does not see
  bool bytes_ = true;              // the query's values are bytes; else words
  uint32_t norm_ = 0;              // squared, of the query
};

template <int kWarps>
__global__ void __launch_bounds__(kWarps * 32, kWarps <= 2 ? 24 / kWarps : 1)
    walk_kernel(const __grid_constant__ WalkTaskCuda task, const __grid_constant__ InlineQueries given) {
  extern __shared__ __align__(16) std::byte memory[];
  __shared__ typename Walker<kWarps>::Counts counts;
  const DeviceRowsView queries = given.rows(task.queries);
  Walker<kWarps>(task, memory, counts).run(queries, blockIdx.x);
}

template <int kWarps>
void launch_with(const WalkTaskCuda& task, const InlineQueries& given, cudaStream_t stream) {
  allow_all_shared_memory(walk_kernel<kWarps>);
  Grid grid = Grid::of(task.queries.count, kWarps * 32).with_shared(task.layout.bytes);
  if (task.near_cells != nullptr) grid = grid.chained();
  launch(walk_kernel<kWarps>, grid, stream, task, given);
}

}  // namespace

void launch_walks(WalkTaskCuda task, const InlineQueries& given, int multiprocessors, cudaStream_t stream) {
  const int warps = walk_warps(task.queries.count, multiprocessors);
  if (task.near_cells != nullptr) launch_rank_cells(task, given, stream);
  task.seen = SeenTable::of(task.places, task.beam, task.degree, warps > 1);
  task.layout = WalkLayout(task.beam, task.kept, task.stride, warps, task.seen);
  switch (warps) {
    case 1: return launch_with<1>(task, given, stream);
    case 2: return launch_with<2>(task, given, stream);
    case 4: return launch_with<4>(task, given, stream);
    default: return launch_with<kWalkMostWarps>(task, given, stream);
  }
}

}  // namespace kith
