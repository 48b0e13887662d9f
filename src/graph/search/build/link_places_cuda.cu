#include "graph/search/build/link_places_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/warp.hpp"
#include "graph/lists/pairs/pair_key_cuda.hpp"
#include "graph/search/graph/walk_view.hpp"
#include "graph/search/walk/compare_codes_cuda.hpp"

#include <cub/device/device_scan.cuh>

#include <algorithm>

namespace kith {
namespace {

constexpr int kLinkWarps = 4;
constexpr int kLinkThreads = 32 * kLinkWarps;
constexpr int kEdgeThreads = 256;

// Keys between places, by the codes that walks go by.
struct CodeKeys {
  static constexpr WalkKind kKind = WalkKind::squares;
  CodesCuda codes;

  // Calls use(i, key) for `count` others, each on one lane. All lanes call it.
  template <typename OtherOf, typename Use>
  KITH_DEVICE_INLINE void compare(uint32_t place, int count, const OtherOf& other_of, const Use& use) const {
    compare_codes(code_as_query(codes, place), codes, count, other_of, [&](bool there, int i, uint32_t, uint32_t key) {
      if (there) use(i, key);
    });
  }
};

// Canonical keys of values.
struct ValueKeys {
  static constexpr WalkKind kKind = WalkKind::canonical;
  PairKeyRows rows;

  template <typename OtherOf, typename Use>
  KITH_DEVICE_INLINE void compare(uint32_t place, int count, const OtherOf& other_of, const Use& use) const {
    constexpr int kPairs = 32 / kRowThreads;
    for (int first = 0; first < count; first += kPairs) {
      const int i = first + lane_index() / kRowThreads;
      const float key = product_pair_key(rows, place, i < count ? other_of(i) : place);
      if (i < count && lane_index() % kRowThreads == 0) use(i, ordered_key(key));
    }
  }
};

// The working memory of a warp: two arrays of entries, and a flag per entry.
struct WarpRoom {
  uint64_t* entries;
  uint64_t* sorted;
  uint8_t* dropped;

  __device__ WarpRoom(std::byte* memory, int warp, int most)
      : entries(reinterpret_cast<uint64_t*>(memory) + int64_t{warp} * 2 * most),
        sorted(entries + most),
        dropped(reinterpret_cast<uint8_t*>(reinterpret_cast<uint64_t*>(memory) + int64_t{kLinkWarps} * 2 * most) +
                int64_t{warp} * most) {}

  // That behind its first entries.
  __device__ WarpRoom behind(int first) const {
    WarpRoom rest = *this;
    rest.entries += first;
    rest.sorted += first;
    rest.dropped += first;
    return rest;
  }
};
constexpr int64_t room_bytes(int64_t most) { return kLinkWarps * most * 17; }

// Entries, none of which is there twice, in their order. By a warp.
KITH_DEVICE_INLINE void sort_entries(const WarpRoom& room, int count) {
  __syncwarp();
  for (int i = lane_index(); i < count; i += 32) {
    const uint64_t entry = room.entries[i];
    int rank = 0;
    for (int j = 0; j < count; ++j) rank += room.entries[j] < entry ? 1 : 0;
    room.sorted[rank] = entry;
  }
  __syncwarp();
}

// Pruner::prune() of the sorted entries, by a warp: calls keep(i, entry) on all lanes; returns how many were kept.
template <typename Keys, typename Keep>
KITH_DEVICE_INLINE int prune_entries(const Keys& keys, const PruneRatio& ratio, int degree, const WarpRoom& room,
                                     int count, const Keep& keep) {
  uint64_t* const left = room.sorted;
  int kept = 0;
  while (count > 0) {
    const uint64_t nearest = left[0];
    keep(kept++, nearest);
    if (kept == degree) break;
    --count;
    keys.compare(
        row_of(nearest), count, [&](int i) { return row_of(left[i + 1]); },
        [&](int i, uint32_t key) {
          const double own = value_of_key(Keys::kKind, ordered_of(left[i + 1]));
          room.dropped[i] = ratio.drops(value_of_key(Keys::kKind, key), own) ? 1 : 0;
        });
    __syncwarp();
    int stay = 0;
    for (int start = 0; start < count; start += 32) {
      const int i = start + lane_index();
      const uint64_t entry = i < count ? left[i + 1] : kPadding;
      const bool stays = i < count && room.dropped[i] == 0;
      const unsigned all = __ballot_sync(kAllLanes, stays);
      __syncwarp();
      if (stays) left[stay + __popc(all & ((1U << lane_index()) - 1U))] = entry;
      stay += __popc(all);
      __syncwarp();
    }
    count = stay;
  }
  return kept;
}

// The place of a warp; -1 where there are no more.
KITH_DEVICE_INLINE int64_t place_of_warp(int64_t places) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kLinkWarps + threadIdx.x / 32;
  return place < places ? place : -1;
}

template <typename Keys>
__global__ void __launch_bounds__(kLinkThreads)
    choose_kernel(const __grid_constant__ LinkTaskCuda task, const __grid_constant__ Keys keys, uint64_t* chosen) {
  extern __shared__ __align__(16) std::byte link_memory[];
  const int64_t chooser = place_of_warp(task.places - task.first);
  if (chooser < 0) return;
  const int64_t place = task.first + chooser;
  const auto most = static_cast<int>(task.candidate_count);
  const WarpRoom room(link_memory, static_cast<int>(threadIdx.x) / 32, most);
  const int64_t* const candidates = task.candidates + chooser * task.candidate_count;
  // Packs the valid candidates, as entries without keys.
  int count = 0;
  for (int start = 0; start < most; start += 32) {
    const int i = start + lane_index();
    const int64_t other = i < most ? candidates[i] : -1;
    const unsigned all = __ballot_sync(kAllLanes, other >= 0);
    if (other >= 0) room.sorted[count + __popc(all & ((1U << lane_index()) - 1U))] = static_cast<uint64_t>(other);
    count += __popc(all);
  }
  __syncwarp();
  keys.compare(
      static_cast<uint32_t>(place), count, [&](int i) { return row_of(room.sorted[i]); },
      [&](int i, uint32_t key) { room.entries[i] = pack_neighbor(key, row_of(room.sorted[i])); });
  sort_entries(room, count);
  uint64_t* const own = chosen + chooser * task.degree;
  const auto degree = static_cast<int>(task.degree);
  const int kept = prune_entries(keys, task.ratio, degree, room, count, [&](int i, uint64_t entry) {
    if (lane_index() == 0) own[i] = entry;
  });
  for (int i = kept + lane_index(); i < degree; i += 32) own[i] = kPadding;
}

__global__ void count_offers_kernel(const uint64_t* chosen, int64_t count, uint32_t* counts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kEdgeThreads + threadIdx.x;
  if (i >= count || chosen[i] == kPadding) return;
  atomicAdd(counts + row_of(chosen[i]), 1U);
}

__global__ void offer_kernel(const uint64_t* chosen, int64_t count, int64_t first, int64_t degree, int64_t* ends,
                             uint64_t* offered) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kEdgeThreads + threadIdx.x;
  if (i >= count || chosen[i] == kPadding) return;
  const uint64_t edge = chosen[i];
  auto* const end = reinterpret_cast<unsigned long long*>(ends + row_of(edge));
  offered[atomicAdd(end, 1ULL)] = pack_neighbor(ordered_of(edge), static_cast<uint32_t>(first + i / degree));
}

// The largest of the `most` smallest among more than `most` distinct entries; by a warp.
KITH_DEVICE_INLINE uint64_t largest_of_first(const uint64_t* entries, int64_t count, int64_t most) {
  uint64_t low = 0;
  uint64_t high = kPadding - 1;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    int64_t within = 0;
    for (int64_t i = lane_index(); i < count; i += 32) within += entries[i] <= middle ? 1 : 0;
    if (warp_sum(within) >= most) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

template <typename Keys>
__global__ void __launch_bounds__(kLinkThreads)
    link_kernel(const __grid_constant__ LinkTaskCuda task, const __grid_constant__ Keys keys, const uint64_t* chosen,
                const uint64_t* offered, const int64_t* ends, const uint32_t* counts) {
  extern __shared__ __align__(16) std::byte link_memory[];
  const int64_t place = place_of_warp(task.places);
  if (place < 0) return;
  const auto degree = static_cast<int>(task.degree);
  const WarpRoom room(link_memory, static_cast<int>(threadIdx.x) / 32, static_cast<int>(kMostOffers) + degree);
  const uint64_t* const own = chosen + place * degree;
  int count = 0;
  for (int start = 0; start < degree; start += 32) {
    const int i = start + lane_index();
    const uint64_t entry = i < degree ? own[i] : kPadding;
    if (entry != kPadding) room.entries[i] = entry;
    count += __popc(__ballot_sync(kAllLanes, entry != kPadding));
  }
  __syncwarp();
  const int own_count = count;
  const int64_t offers = counts[place];
  const uint64_t* const from = offered + ends[place] - offers;
  const uint64_t last = offers > kMostOffers ? largest_of_first(from, offers, kMostOffers) : kPadding - 1;
  for (int64_t start = 0; start < offers; start += 32) {
    const int64_t i = start + lane_index();
    const uint64_t entry = i < offers ? from[i] : kPadding;
    bool enters = entry <= last;
    for (int j = 0; j < own_count; ++j) enters = enters && room.entries[j] != entry;
    const unsigned all = __ballot_sync(kAllLanes, enters);
    if (enters) room.entries[count + __popc(all & ((1U << lane_index()) - 1U))] = entry;
    count += __popc(all);
  }
  sort_entries(room, count);
  uint32_t* const list = task.edges + place * degree;
  const int kept = prune_entries(keys, task.ratio, degree, room, count, [&](int i, uint64_t entry) {
    if (lane_index() == 0) list[i] = row_of(entry);
  });
  for (int i = kept + lane_index(); i < degree; i += 32) list[i] = kNoEdge;
}

// What a place that has chosen begins with.
__global__ void begin_lists_kernel(const __grid_constant__ LinkTaskCuda task, const uint64_t* chosen) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kEdgeThreads + threadIdx.x;
  if (i >= (task.places - task.first) * task.degree) return;
  task.edges[task.first * task.degree + i] = chosen[i] == kPadding ? kNoEdge : row_of(chosen[i]);
}

__global__ void __launch_bounds__(kLinkThreads)
    take_kernel(const __grid_constant__ LinkTaskCuda task, const __grid_constant__ CodeKeys keys,
                const uint64_t* offered, const int64_t* ends, const uint32_t* counts) {
  extern __shared__ __align__(16) std::byte link_memory[];
  const int64_t place = place_of_warp(task.places);
  if (place < 0) return;
  const int64_t offers = counts[place];
  if (offers == 0) return;
  const auto degree = static_cast<int>(task.degree);
  const WarpRoom room(link_memory, static_cast<int>(threadIdx.x) / 32, static_cast<int>(kMostOffers) + degree);
  uint32_t* const list = task.edges + place * degree;
  int have = 0;
  for (int start = 0; start < degree; start += 32) {
    const int i = start + lane_index();
    const uint32_t other = i < degree ? list[i] : kNoEdge;
    if (other != kNoEdge) room.sorted[i] = other;
    have += __popc(__ballot_sync(kAllLanes, other != kNoEdge));
  }
  __syncwarp();
  keys.compare(
      static_cast<uint32_t>(place), have, [&](int i) { return row_of(room.sorted[i]); },
      [&](int i, uint32_t key) { room.entries[i] = pack_neighbor(key, row_of(room.sorted[i])); });
  __syncwarp();
  // Offers behind, of others than the list has.
  const uint64_t* const from = offered + ends[place] - offers;
  const uint64_t last = offers > kMostOffers ? largest_of_first(from, offers, kMostOffers) : kPadding - 1;
  int count = have;
  for (int64_t start = 0; start < offers; start += 32) {
    const int64_t i = start + lane_index();
    const uint64_t entry = i < offers ? from[i] : kPadding;
    bool enters = entry <= last;
    for (int j = 0; j < have; ++j) enters = enters && room.entries[j] != entry;
    const unsigned all = __ballot_sync(kAllLanes, enters);
    if (enters) room.entries[count + __popc(all & ((1U << lane_index()) - 1U))] = entry;
    count += __popc(all);
  }
  if (count <= degree) {
    const WarpRoom fresh = room.behind(have);
    sort_entries(fresh, count - have);
    for (int i = lane_index(); i < count - have; i += 32) list[have + i] = row_of(fresh.sorted[i]);
    return;
  }
  sort_entries(room, count);
  const int kept = prune_entries(keys, task.ratio, degree, room, count, [&](int i, uint64_t entry) {
    if (lane_index() == 0) list[i] = row_of(entry);
  });
  for (int i = kept + lane_index(); i < degree; i += 32) list[i] = kNoEdge;
}

__global__ void changed_kernel(const __grid_constant__ LinkTaskCuda task, const uint32_t* counts, uint32_t* changed,
                               uint32_t* count) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kEdgeThreads + threadIdx.x;
  if (place >= task.places || (place < task.first && counts[place] == 0)) return;
  changed[atomicAdd(count, 1U)] = static_cast<uint32_t>(place);
}

__global__ void gather_edges_kernel(const __grid_constant__ LinkTaskCuda task, const uint32_t* some, int64_t count,
                                    uint32_t* lists) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kEdgeThreads + threadIdx.x;
  if (i >= count * task.degree) return;
  lists[i] = task.edges[int64_t{some[i / task.degree]} * task.degree + i % task.degree];
}

int64_t scan_memory(int64_t places) {
  size_t bytes = 0;
  KITH_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, static_cast<const uint32_t*>(nullptr),
                                                static_cast<int64_t*>(nullptr), static_cast<int>(places)));
  return static_cast<int64_t>(bytes);
}

// What places have chosen, and, by target, who has chosen it: layout.counts offers up to where layout.ends says.
template <typename Keys>
void launch_offers(const LinkTaskCuda& task, const Keys& keys, const LinkLayoutCuda& layout, std::byte* memory,
                   cudaStream_t stream) {
  const int64_t choosers = task.places - task.first;
  const int64_t edges = choosers * task.degree;
  uint64_t* const chosen = layout.chosen.in(memory);
  uint32_t* const counts = layout.counts.in(memory);
  int64_t* const ends = layout.ends.in(memory);
  const Grid by_warps = Grid::over(choosers, kLinkWarps);
  allow_all_shared_memory(choose_kernel<Keys>);
  launch(choose_kernel<Keys>, Grid::of(by_warps.blocks.x, kLinkThreads).with_shared(room_bytes(task.candidate_count)),
         stream, task, keys, chosen);
  fill_bytes(counts, 0, task.places * static_cast<int64_t>(sizeof(uint32_t)), stream);
  launch(count_offers_kernel, Grid::over(edges, kEdgeThreads), stream, chosen, edges, counts);
  auto scan_bytes = static_cast<size_t>(layout.scan.count);
  KITH_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(layout.scan.in(memory), scan_bytes,
                                                static_cast<const uint32_t*>(counts), ends,
                                                static_cast<int>(task.places), stream));
  launch(offer_kernel, Grid::over(edges, kEdgeThreads), stream, chosen, edges, task.first, task.degree, ends,
         layout.offered.in(memory));
}

// A warp for each place, with room for the most that it may look at.
Grid grid_of_places(const LinkTaskCuda& task) {
  const Grid by_warps = Grid::over(task.places, kLinkWarps);
  return Grid::of(by_warps.blocks.x, kLinkThreads).with_shared(room_bytes(kMostOffers + task.degree));
}

template <typename Keys>
void launch_with(const LinkTaskCuda& task, const Keys& keys, const LinkLayoutCuda& layout, std::byte* memory,
                 cudaStream_t stream) {
  launch_offers(task, keys, layout, memory, stream);
  allow_all_shared_memory(link_kernel<Keys>);
  launch(link_kernel<Keys>, grid_of_places(task), stream, task, keys, layout.chosen.in(memory),
         layout.offered.in(memory), layout.ends.in(memory), layout.counts.in(memory));
}

CodeKeys code_keys(const LinkTaskCuda& task) { return {{task.codes, static_cast<int>(task.stride / 16)}}; }

}  // namespace

LinkLayoutCuda::LinkLayoutCuda(int64_t places, int64_t choosers, int64_t degree)
    : chosen(take<uint64_t>(choosers, degree)),
      offered(take<uint64_t>(choosers, degree)),
      ends(take<int64_t>(places)),
      counts(take<uint32_t>(places)),
      scan(take<std::byte>(scan_memory(places))) {}

void launch_link_places(const LinkTaskCuda& task, const LinkLayoutCuda& layout, std::byte* memory,
                        cudaStream_t stream) {
  if (task.codes != nullptr) {
    launch_with(task, code_keys(task), layout, memory, stream);
  } else {
    launch_with(task, ValueKeys{task.rows}, layout, memory, stream);
  }
}

void launch_link_more(const LinkTaskCuda& task, const LinkLayoutCuda& layout, std::byte* memory, cudaStream_t stream) {
  const CodeKeys keys = code_keys(task);
  launch_offers(task, keys, layout, memory, stream);
  const int64_t fresh = (task.places - task.first) * task.degree;
  launch(begin_lists_kernel, Grid::over(fresh, kEdgeThreads), stream, task, layout.chosen.in(memory));
  allow_all_shared_memory(take_kernel);
  launch(take_kernel, grid_of_places(task), stream, task, keys, layout.offered.in(memory), layout.ends.in(memory),
         layout.counts.in(memory));
}

void launch_changed_places(const LinkTaskCuda& task, const LinkLayoutCuda& layout, std::byte* memory, uint32_t* changed,
                           uint32_t* count, cudaStream_t stream) {
  launch(changed_kernel, Grid::over(task.places, kEdgeThreads), stream, task, layout.counts.in(memory), changed, count);
}

void launch_gather_edges(const LinkTaskCuda& task, const uint32_t* some, int64_t count, uint32_t* lists,
                         cudaStream_t stream) {
  launch(gather_edges_kernel, Grid::over(count * task.degree, kEdgeThreads), stream, task, some, count, lists);
}

}  // namespace kith
