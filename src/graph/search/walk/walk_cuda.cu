// Walks on a GPU (walk.hpp says what they find; this finds the same). A block has one query: from its values to its
// code, the nearest cells, their entries, and step after step until all places of the beam were opened. The host is not
// asked on the way.
//
// A step: every warp finds what is opened next, takes some of the edges, asks the seen table, and compares the codes of
// the others, eight threads a code, 16 bytes a load, four bytes a multiply-add. What is nearer than the last of the
// beam is fresh, and enters it (next_beam_cuda.hpp).
//
// Cost of a step: two loads that wait for each other (lists, codes), and two waits of the block. The lists of fresh
// places that are likely to be opened next are asked for while the beam is made.
#include "graph/search/walk/walk_cuda.hpp"

#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/search/walk/near_cells_cuda.hpp"

#include <cuda_runtime.h>

namespace kith {
namespace {

constexpr uint16_t kNothingSeen = 0xFFFF;

template <int kWarps>
class Walker : NearCells<kWarps> {
  using Cells = NearCells<kWarps>;
  using Cells::beam_;
  using Cells::bytes_;
  using Cells::compare;
  using Cells::counts_;
  using Cells::enter_all;
  using Cells::entries_of;
  using Cells::entry_at;
  using Cells::find_cells;
  using Cells::first_;
  using Cells::fresh;
  using Cells::fresh_kept;
  using Cells::kept_;
  using Cells::lane;
  using Cells::last_;
  using Cells::load;
  using Cells::ready_turn;
  using Cells::sync;
  using Cells::task_;
  using Cells::thread;
  using Cells::warp;
  using typename Cells::NearEntries;

 public:
  using Cells::kRound;
  using Cells::kStaged;
  using Cells::kThreads;

  __device__ Walker(const WalkTaskCuda& task, std::byte* memory, WalkCounts& counts)
      : Cells(task, memory, counts),
        staged_(this->template at<uint32_t>(task.layout.staged) + warp() * (kStaged + kWalkOpened)),
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

  // Whether a place was not seen; now it is. One warp does without atomics: lanes that meet in a slot may overwrite
  // each other's tags (racecheck tells of it). A place is then forgotten, or of one that two lanes have both are told
  // that it is new: either is compared again, and the beam refuses doubles.
  KITH_DEVICE_INLINE bool see(uint32_t place) const {
    const SeenTable& seen = task_.seen;
    const uint32_t mixed = seen.mixed(place);
    const uint32_t own = seen.slot(mixed);
    if constexpr (kWarps > 1) {
      auto* const slots = this->template at<uint32_t>(task_.layout.seen);
      for (int probe = 0; probe < SeenTable::kProbes; ++probe) {
        const uint32_t before = atomicCAS(slots + seen.slot_after(own, probe), kNoEdge, place);
        if (before == kNoEdge) return true;
        if (before == place) return false;
      }
      slots[own] = place;
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

  // A place of each lane, or kNoEdge, is put behind `count` staged ones where it was not seen. Returns how many there
  // are then. All lanes call it.
  KITH_DEVICE_INLINE int stage_unseen(uint32_t place, int count) const {
    const bool there = place != kNoEdge && place != hidden_ && see(place);
    const unsigned unseen = __ballot_sync(kAllLanes, there);
    if (there) staged_[count + __popc(unseen & ((1U << lane()) - 1U))] = place;
    __syncwarp();
    return count + __popc(unseen);
  }
  // The staged places are compared and offered.
  KITH_DEVICE_INLINE void compare_staged(int count, const Bounds& bounds) const {
    const auto use = [&](bool is, uint32_t one, uint32_t key) { offer(is, one, key, bounds); };
    // As few codes as there are in the last turn.
    const int rest = count % (kCodesOfWarp * kCodesAhead);
    const int wide = rest <= 2 * kCodesOfWarp ? count - rest : count;
    compare(
        task_.codes, wide, [&](int i) { return staged_[i]; }, use);
    if (wide < count) {
      compare<2>(
          task_.codes, count - wide, [&](int i) { return staged_[wide + i]; }, use);
    }
    __syncwarp();  // before the staged places are others
  }
  // The same for the places of up to 2 * kCodesOfWarp lanes, so few that nothing is gained by closing the gaps.
  KITH_DEVICE_INLINE void compare_few(uint32_t place, const Bounds& bounds) const {
    const uint32_t mine = place != kNoEdge && place != hidden_ && see(place) ? place : kNoEdge;
    compare<2>(
        task_.codes, 2 * kCodesOfWarp, [&](int i) { return __shfl_sync(kAllLanes, mine, i); },
        [&](bool is, uint32_t one, uint32_t key) { offer(is, one, key, bounds); });
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
  // The edge of a step that a lane has, the same in every step, where few queries have the memory to themselves.
  struct OwnEdge {
    int list;    // of those that are opened
    int number;  // in that list
  };
  // That edge of the places that are opened, which may have been guessed.
  __device__ uint32_t edge_of(uint32_t from, const OwnEdge& own, const NextEdge& next) const {
    if (from == next.from) return next.to;
    return from < task_.places ? __ldg(task_.edges + int64_t{from} * task_.degree + own.number) : kNoEdge;
  }
  // The same edge of the places that are likely to be opened next: the nearest of the fresh entries and of those in the
  // beam behind what was opened (`later`). Its load is under way while the beam is made. By a warp, between two waits.
  KITH_DEVICE_INLINE NextEdge guess(const OwnEdge& own, const uint32_t* later, int later_count) const {
    const FreshEntries from = fresh();
    uint64_t entry = kPadding;
    if (lane() >= 32 - later_count) {
      entry = beam_.now[later[lane() - (32 - later_count)]];
    } else if (lane() < *from.count) {
      entry = from.entries[lane()];
    }
    NextEdge next;
    uint32_t key = ordered_of(entry);
    for (int i = 0; i < task_.width; ++i) {
      const uint32_t least = __reduce_min_sync(kAllLanes, key);
      const int who = __ffs(static_cast<int>(__ballot_sync(kAllLanes, key == least))) - 1;
      const uint32_t place = __shfl_sync(kAllLanes, row_of(entry) >> 1, who);
      if (own.list == i && least != 0xFFFFFFFFU) next.from = place;
      if (lane() == who) key = 0xFFFFFFFFU;
    }
    if (next.from < task_.places) next.to = __ldg(task_.edges + int64_t{next.from} * task_.degree + own.number);
    return next;
  }
  // Asks for the code of that edge, where it was not seen.
  __device__ void ask_for(const NextEdge& next) const {
    if (next.to == kNoEdge) return;
    const auto* const slots = this->template at<uint32_t>(task_.layout.seen);
    if (slots[task_.seen.slot(task_.seen.mixed(next.to))] == next.to) return;
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
  // the beam that are next; returns how many are opened. last_ is where the last of these stands: all up to there are
  // opened, and marked when the beam moves. By a warp.
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

  // Compares the places of a round, place_of(i) for i below `some`, spread over the warps.
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

  // The entries of the nearest cells and the tail enter the beam.
  KITH_DEVICE_INLINE void begin(int64_t query) {
    SortedList near(this->template at<uint64_t>(task_.layout.cells), static_cast<int>(kNearCells));
    find_cells(near, query);
    const NearEntries entries = entries_of(near);
    for (int first = 0; first < entries.total; first += kRound) {
      compare_round(min(kRound, entries.total - first), bounds(),
                    [&](int i, bool has) { return entry_at(entries, has ? first + i : entries.total); });
      sync();
      enter_all([] {});
    }
    for (int64_t first = 0; first < task_.tail_places; first += kRound) {
      compare_tail(first, bounds());
      sync();
      enter_all([] {});
    }
  }

  // Steps until all places of the beam were opened. Few queries have the memory to themselves: lists and codes of the
  // next step are asked for before it is known, and each lane has one edge of a step.
  KITH_DEVICE_INLINE void walk_few() {
    const int edges = task_.width * task_.degree;
    const int each = (edges + kWarps - 1) / kWarps;
    const int mine = min(warp() * each + lane(), edges - 1);
    const bool has = lane() < each && warp() * each + lane() < edges;
    const OwnEdge own{mine / task_.degree, mine % task_.degree};
    const bool few = each <= 2 * kCodesOfWarp;
    uint32_t* const chosen = staged_ + kStaged;
    NextEdge next;
    for (;;) {
      int chosen_count = 0;  // opened, and guessed to be next
      const int opened = open(chosen, task_.width, chosen_count);
      if (opened == 0) return;
      const Bounds now = bounds();
      const uint32_t place = has && own.list < opened ? edge_of(chosen[own.list], own, next) : kNoEdge;
      if (few) {
        compare_few(place, now);
      } else {
        compare_staged(stage_unseen(place, 0), now);
      }
      sync();
      next = guess(own, chosen + task_.width, max(0, chosen_count - task_.width));
      enter_all([&] {
        if (has) ask_for(next);
      });
    }
  }

  // The same for many queries, and for wide steps.
  KITH_DEVICE_INLINE void walk_many() {
    const int lists = min(kRound / task_.degree, kWalkOpened);  // of a round
    const bool by_itself = task_.width <= lists;                // every warp knows what is opened
    uint32_t* const own = staged_ + kStaged;
    for (;;) {
      int chosen_count = 0;
      const int open_count = by_itself ? open(own, 0, chosen_count) : open_for_all();
      if (open_count == 0) return;
      for (int opened = 0; opened < open_count; opened += lists) {
        const uint32_t* const from = by_itself ? own : counts_.places + opened;
        compare_round(min(lists, open_count - opened) * task_.degree, bounds(),
                      [&](int i, bool has) { return has ? edge_at(from, i) : kNoEdge; });
        sync();
        enter_all([] {});
      }
    }
  }

  KITH_DEVICE_INLINE void walk(int64_t query) {
    begin(query);
    if (kWarps == kWalkMostWarps && 2 * task_.width <= kWalkOpened && task_.width * task_.degree <= kThreads) {
      walk_few();
    } else {
      walk_many();
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

  uint32_t* const staged_;
  const uint32_t degree_inverse_;  // to divide by the degree
  uint32_t hidden_ = kNoEdge;      // a place that the walk does not see
};

template <int kWarps>
__global__ void __launch_bounds__(kWarps * 32, kWarps <= 2 ? 24 / kWarps : 1)
    walk_kernel(const __grid_constant__ WalkTaskCuda task, const __grid_constant__ InlineQueries given) {
  extern __shared__ __align__(16) std::byte memory[];
  __shared__ WalkCounts counts;
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
