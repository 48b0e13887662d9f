// Walks on a GPU (walk.hpp says what they find; this finds the same). A block has one query: from its values to its
// code, the nearest cells, their entries, and step after step until all places of the beam were opened. The host is not
// asked on the way.
//
// A step: every warp takes some of the edges of the places that are opened, asks the seen table, and compares the codes
// of the others, eight threads a code, 16 bytes a load, four bytes a multiply-add. What is nearer than the last of the
// beam is fresh. Then every entry of the beam and every fresh one counts how many are before it, and moves there, into
// the beam's other half; a place that was there already is left out.
//
// Cost of a step: two loads that wait for each other (lists, codes), and some ten waits of the block. The lists of
// fresh places that are likely to be opened next are asked for while the beam is made.
#include "graph/search/walk_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "graph/search/code_query_cuda.hpp"

#include <cuda_runtime.h>

namespace kith {
namespace {

constexpr int kCodeThreads = 8;                  // that compare a code together
constexpr int kCodesOfWarp = 32 / kCodeThreads;  // at a time
constexpr int kCodesAhead = 4;                   // times that, so many loads are under way
constexpr uint32_t kTwice = 0xFFFFFFFFU;         // the rank of a fresh entry that is there already
constexpr uint64_t kOpenedBit = 1;
constexpr int kShortList = 128;  // up to which warps look through a list
static_assert(kWalkRound % 32 == 0);

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

struct FreshEntries {
  uint64_t* entries;
  int* count;
  int* doubles;

  __device__ void add(uint64_t entry) const { entries[atomicAdd(count, 1)] = entry; }
};

template <int kWarps>
class Walker {
 public:
  static constexpr int kThreads = kWarps * 32;

  struct Counts {
    int fresh[2];
    int doubles[2];
    int first;  // no place of the beam before it is unopened
    int opened;
    uint32_t bound;                     // of the keys of the nearest cells
    uint32_t places[kWalkLargestStep];  // that are opened
  };

  __device__ Walker(const WalkTaskCuda& task, std::byte* memory, Counts& counts)
      : task_(task),
        memory_(memory),
        counts_(counts),
        beam_(at<uint64_t>(task.layout.beam), task.beam),
        kept_(at<uint64_t>(task.layout.kept), task.kept),
        staged_(at<uint32_t>(task.layout.staged) + warp() * 32),
        ranks_(at<uint32_t>(task.layout.ranks)),
        seen_(at<uint16_t>(task.layout.seen)),
        chunks_(static_cast<int>(task.stride / 16)) {}

  KITH_DEVICE_INLINE void run(const DeviceRowsView& queries, int64_t query) {
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
  __device__ FreshEntries fresh() const {
    return {at<uint64_t>(task_.layout.fresh), &counts_.fresh[0], &counts_.doubles[0]};
  }
  __device__ FreshEntries fresh_kept() const {
    return {at<uint64_t>(task_.layout.fresh_kept), &counts_.fresh[1], &counts_.doubles[1]};
  }

  KITH_DEVICE_INLINE void clear() {
    auto* const words = at<uint4>(task_.layout.seen);
    const int count = (2 << task_.seen.slot_bits) / 16;
    for (int i = thread(); i < count; i += kThreads) words[i] = make_uint4(~0U, ~0U, ~0U, ~0U);
    if (thread() == 0) {
      counts_.fresh[0] = counts_.fresh[1] = counts_.doubles[0] = counts_.doubles[1] = 0;
      counts_.first = 0;
      counts_.bound = 0xFFFFFFFFU;
    }
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

  // What 16 columns add to a key: the square of the code less twice the product with the query, or less the product.
  KITH_DEVICE_INLINE uint32_t part_of_key(const uint4& code, const uint4& low, const uint4& high) const {
    const uint32_t x[4] = {code.x, code.y, code.z, code.w};
    const uint32_t q[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    int product = 0;
    int square = 0;
    if (bytes_) {
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) product = __dp4a(static_cast<int>(x[i]), static_cast<int>(q[i]), product);
    } else {
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        product = __dp2a_lo(static_cast<int>(q[2 * i]), static_cast<int>(x[i]), product);
        product = __dp2a_hi(static_cast<int>(q[2 * i + 1]), static_cast<int>(x[i]), product);
      }
    }
    if (task_.kind == WalkKind::products) return 0U - static_cast<uint32_t>(product);
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) square = __dp4a(static_cast<int>(x[i]), static_cast<int>(x[i]), square);
    return static_cast<uint32_t>(square) - 2U * static_cast<uint32_t>(product);
  }

  // Calls use(number, key) for `count` codes, those with numbers number_of(0), number_of(1), ...; each on one lane of
  // the warp. All lanes call it.
  template <int kAhead = kCodesAhead, typename NumberOf, typename Use>
  KITH_DEVICE_INLINE void compare(const int8_t* codes, int count, const NumberOf& number_of, const Use& use) const {
    constexpr uint32_t kNone = 0xFFFFFFFFU;
    const int group = lane() / kCodeThreads;
    const int part = lane() % kCodeThreads;
    const auto* const query = at<uint4>(task_.layout.query);
    for (int first = 0; first < count; first += kCodesOfWarp * kAhead) {
      uint32_t numbers[kAhead];
      uint32_t sums[kAhead] = {};
      KITH_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        const int n = first + i * kCodesOfWarp + group;
        numbers[i] = n < count ? number_of(n) : kNone;
      }
      for (int chunk = part; chunk < chunks_; chunk += kCodeThreads) {
        uint4 loaded[kAhead] = {};
        KITH_UNROLL
        for (int i = 0; i < kAhead; ++i) {
          if (numbers[i] != kNone) {
            loaded[i] = __ldg(reinterpret_cast<const uint4*>(codes + int64_t{numbers[i]} * task_.stride) + chunk);
          }
        }
        const uint4 low = bytes_ ? query[chunk] : query[2 * chunk];
        const uint4 high = bytes_ ? low : query[2 * chunk + 1];
        KITH_UNROLL
        for (int i = 0; i < kAhead; ++i) sums[i] += part_of_key(loaded[i], low, high);
      }
      KITH_UNROLL
      for (int i = 0; i < kAhead; ++i) sums[i] = warp_sum<kCodeThreads>(sums[i]);
      // Each of the first lanes of a group has one of its codes.
      uint32_t number = kNone;
      uint32_t sum = 0;
      KITH_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        if (part == i) {
          number = numbers[i];
          sum = sums[i];
        }
      }
      if (number != kNone) use(number, (sum + norm_) ^ kSignBit);
    }
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
    const int soon = counts_.first + 2 * task_.width;
    return {beam_.bound(), task_.kept_bits == nullptr ? 0 : kept_.bound(),
            soon < beam_.size ? beam_.now[soon] : kPadding};
  }
  KITH_DEVICE_INLINE void offer(uint32_t place, uint32_t key, const Bounds& bounds) const {
    const uint64_t entry = pack_neighbor(key, place << 1);
    if (entry < bounds.beam) {
      fresh().add(entry);
      if (entry < bounds.near && place < task_.places) {
        ptx::prefetch(task_.edges + int64_t{place} * task_.degree);
      }
    }
    if (entry < bounds.kept && filter_keeps(place)) fresh_kept().add(entry);
  }

  // The unseen ones of up to 32 places, one a lane or kNoEdge, are compared and offered. All lanes call it.
  KITH_DEVICE_INLINE void compare_unseen(uint32_t place, const Bounds& bounds) const {
    bool there = place != kNoEdge;
    if (there) {
      const uint32_t mixed = task_.seen.mixed(place);
      uint16_t* const slot = seen_ + task_.seen.slot(mixed);
      const uint16_t tag = task_.seen.tag(mixed);
      there = *slot != tag;
      *slot = tag;  // who writes last is remembered; places that two lanes have are told apart later
    }
    const unsigned unseen = __ballot_sync(kAllLanes, there);
    if (there) staged_[__popc(unseen & ((1U << lane()) - 1U))] = place;
    __syncwarp();
    compare(
        task_.codes, __popc(unseen), [&](int i) { return staged_[i]; },
        [&](uint32_t number, uint32_t key) { offer(number, key, bounds); });
    __syncwarp();  // before the staged places are others
  }

  // How many of the list are before each fresh entry, or that it is there already: in the list, or among the fresh ones
  // before it. By threads: bisection.
  KITH_DEVICE_INLINE void find_ranks(const SortedList& list, const FreshEntries& from, int count) const {
    for (int i = thread(); i < count; i += kThreads) {
      const uint64_t entry = from.entries[i];
      int low = 0;
      for (int high = list.size; low < high;) {
        const int middle = (low + high) / 2;
        if ((list.now[middle] & ~kOpenedBit) < entry) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      bool twice = low < list.size && (list.now[low] & ~kOpenedBit) == entry;
#pragma unroll 4
      for (int j = 0; j < i; ++j) twice |= from.entries[j] == entry;
      ranks_[i] = twice ? kTwice : static_cast<uint32_t>(low);
      if (twice) atomicAdd(from.doubles, 1);
    }
  }
  // The same by warps, which look at 32 entries at a time: sooner for short lists.
  KITH_DEVICE_INLINE void find_ranks_by_warps(const SortedList& list, const FreshEntries& from, int count) const {
    for (int i = warp(); i < count; i += kWarps) {
      const uint64_t entry = from.entries[i];
      int before = 0;
      bool twice = false;
      for (int start = 0; start < list.size; start += 32) {
        const int j = start + lane();
        const uint64_t other = j < list.size ? list.now[j] & ~kOpenedBit : kPadding;
        before += __popc(__ballot_sync(kAllLanes, other < entry));
        twice |= other == entry;
      }
      for (int j = lane(); j < i; j += 32) twice |= from.entries[j] == entry;
      twice = __any_sync(kAllLanes, twice);
      if (lane() != 0) continue;
      ranks_[i] = twice ? kTwice : static_cast<uint32_t>(before);
      if (twice) atomicAdd(from.doubles, 1);
    }
  }

  // Fresh entries enter the list. All threads call it, before and after a wait for each other.
  KITH_DEVICE_INLINE void enter(SortedList& list, const FreshEntries& from, bool is_beam) {
    const int count = *from.count;
    if (count == 0) return;
    const uint64_t* const entries = from.entries;
    if (kWarps >= 4 && list.size <= kShortList) {
      find_ranks_by_warps(list, from, count);
    } else {
      find_ranks(list, from, count);
    }
    sync();
    const int size = list.size;
    const int after = min(list.capacity, size + count - *from.doubles);
    if (thread() == 0) *from.count = 0;
    for (int i = thread(); i < count + size; i += kThreads) {
      const bool is_fresh = i < count;
      if (is_fresh && ranks_[i] == kTwice) continue;
      const uint64_t entry = is_fresh ? entries[i] : list.now[i - count];
      int to = is_fresh ? static_cast<int>(ranks_[i]) : i - count;
#pragma unroll 4
      for (int j = 0; j < count; ++j) to += ranks_[j] != kTwice && entries[j] < entry ? 1 : 0;
      if (to >= list.capacity) continue;
      list.next[to] = entry;
      if (is_fresh && is_beam) atomicMin(&counts_.first, to);
    }
    sync();
    if (thread() == 0) *from.doubles = 0;
    uint64_t* const before = list.now;
    list.now = list.next;
    list.next = before;
    list.size = after;
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
        [&](uint32_t cell, uint32_t key) { keys[cell] = key; });
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
      if (place < kWalkRound) to.entries[place] = pack_neighbor(keys[i], static_cast<uint32_t>(i) << 1);
    }
    sync();
    if (*to.count <= kWalkRound) {
      enter(near, to, false);
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
    for (int first = 0; first < task_.cells; first += round, round = min(2 * round, kWalkRound)) {
      const int some = min(round, task_.cells - first);
      const uint64_t bound = near.bound();
      const FreshEntries to = fresh();
      for (int start = warp() * 16; start < some; start += kWarps * 16) {
        const int from = first + start;
        compare(
            task_.centres, min(16, some - start), [&](int i) { return static_cast<uint32_t>(from + i); },
            [&](uint32_t cell, uint32_t key) {
              const uint64_t entry = pack_neighbor(key, cell << 1);
              if (entry < bound) to.add(entry);
            });
      }
      sync();
      enter(near, to, false);
      sync();
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
  __device__ static uint32_t cell_at(const SortedList& near, int i) { return row_of(near.now[i]) >> 1; }
  __device__ int entries_of(const SortedList& near, int i) const {
    const uint32_t* const offsets = task_.entry_offsets + cell_at(near, i);
    return static_cast<int>(offsets[1] - offsets[0]);
  }

  // The n-th of the entries of these cells, one cell's behind the other's.
  __device__ uint32_t entry_at(const SortedList& near, int n) const {
    for (int i = 0;; ++i) {
      const int count = entries_of(near, i);
      if (n < count) return task_.entries[task_.entry_offsets[cell_at(near, i)] + static_cast<uint32_t>(n)];
      n -= count;
    }
  }
  // The n-th edge of the places that are opened, from the first-th of these on; kNoEdge where there is none.
  __device__ uint32_t edge_at(int first, int n) const {
    const uint32_t from = counts_.places[first + n / task_.degree];
    if (from >= task_.places) return kNoEdge;  // of the tail
    return __ldg(task_.edges + int64_t{from} * task_.degree + n % task_.degree);
  }

  // Compares rows of the tail, from the first-th on.
  KITH_DEVICE_INLINE void compare_tail(int64_t first, const Bounds& now) const {
    const int some = static_cast<int>(min(static_cast<int64_t>(kWalkRound), task_.tail_places - first));
    for (int start = warp() * 16; start < some; start += kWarps * 16) {
      compare(
          task_.tail, min(16, some - start), [&](int i) { return static_cast<uint32_t>(first + start + i); },
          [&](uint32_t number, uint32_t key) { offer(static_cast<uint32_t>(task_.places) + number, key, now); });
    }
  }

  // Chooses what is opened next; false where all were opened.
  KITH_DEVICE_INLINE bool open() {
    if (warp() == 0) {
      const int from = counts_.first;
      int opened = 0;
      int first = beam_.size;
      for (int start = from; start < beam_.size && opened < task_.width; start += 32) {
        const int i = start + lane();
        const uint64_t entry = i < beam_.size ? beam_.now[i] : kOpenedBit;
        const bool closed = (entry & kOpenedBit) == 0;
        const unsigned all = __ballot_sync(kAllLanes, closed);
        const int place = opened + __popc(all & ((1U << lane()) - 1U));
        if (closed && place < task_.width) {
          counts_.places[place] = row_of(entry) >> 1;
          beam_.now[i] = entry | kOpenedBit;
        }
        if (opened == 0 && all != 0) first = start + __ffs(static_cast<int>(all)) - 1;
        opened += __popc(all);
      }
      __syncwarp();
      if (lane() == 0) {
        counts_.opened = min(opened, task_.width);
        counts_.first = first;
      }
    }
    sync();
    return counts_.opened > 0;
  }

  // Rounds until all places of the beam were opened: entries first, then the tail, then edges.
  KITH_DEVICE_INLINE void walk(int64_t query) {
    SortedList near(at<uint64_t>(task_.layout.cells), static_cast<int>(kNearCells));
    find_cells(near, query);
    int entries = 0;
    for (int i = 0; i < near.size; ++i) entries += entries_of(near, i);
    const int lists = kWalkRound / task_.degree;  // of a round
    int entry = 0;
    int64_t tail = 0;
    int opened = 0;
    int open_count = 0;
    for (;;) {
      const bool enters = entry < entries;
      const bool has_tail = !enters && tail < task_.tail_places;
      if (!enters && !has_tail && opened >= open_count) {
        if (!open()) return;
        opened = 0;
        open_count = counts_.opened;
      } else {
        sync();
      }
      const Bounds now = bounds();
      if (has_tail) {
        compare_tail(tail, now);
        tail += kWalkRound;
      } else {
        const int some = enters ? min(kWalkRound, entries - entry) : min(lists, open_count - opened) * task_.degree;
        const int each = min(32, (some + kWarps - 1) / kWarps);
        for (int start = warp() * each; start < some; start += kWarps * each) {
          const int i = start + lane();
          uint32_t place = kNoEdge;
          if (lane() < each && i < some) place = enters ? entry_at(near, entry + i) : edge_at(opened, i);
          compare_unseen(place, now);
        }
        if (enters) {
          entry += kWalkRound;
        } else {
          opened += lists;
        }
      }
      sync();
      enter(beam_, fresh(), true);
      if (task_.kept_bits != nullptr) enter(kept_, fresh_kept(), false);
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
  uint16_t* const seen_;
  const int chunks_;
  bool bytes_ = true;  // the query's values are bytes; else words
  uint32_t norm_ = 0;  // squared, of the query
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
  task.seen = SeenTable::of(task.places, task.beam, task.degree, warps == kWalkMostWarps);
  task.layout = WalkLayout(task.beam, task.kept, task.stride, warps, task.seen);
  switch (warps) {
    case 1: return launch_with<1>(task, given, stream);
    case 2: return launch_with<2>(task, given, stream);
    case 4: return launch_with<4>(task, given, stream);
    default: return launch_with<kWalkMostWarps>(task, given, stream);
  }
}

}  // namespace kith
