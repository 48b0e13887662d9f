#include "ivf/scan/scan_lists_task_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kScanThreads = 1024;
constexpr uint32_t kNoPair = 0xFFFFFFFFu;
constexpr uint32_t kLater = 0x80000000u;

// By a warp.
__device__ void count_pairs(const ProbePairsTask& task, int64_t query) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  uint32_t* const value_starts = task.value_starts + query * (kMostFirstSlots + 1);
  uint32_t before = 0;  // vectors of the first pairs so far
  uint32_t all_first = 0;
  for (int64_t base = 0; base < task.slots; base += 32) {
    const int64_t slot = base + lane;
    const uint64_t probe = slot < task.slots ? task.probes[query * task.slots + slot] : kPadding;
    const bool real = probe != kPadding && row_of(probe) < task.lists.lists;
    const int64_t list = real ? row_of(probe) : 0;
    const int64_t length = real ? task.lists.offsets[list + 1] - task.lists.offsets[list] : 0;
    const uint32_t kept = task.cut.first_rows_of(static_cast<uint32_t>(length));
    const uint32_t end = before + warp_inclusive(kept);
    const uint32_t start = end - kept;
    const bool first = slot < kMostFirstSlots && start < task.cut.first_rows;
    if (slot < kMostFirstSlots) value_starts[slot] = first ? start : 0xFFFFFFFFu;
    const uint32_t first_end = first ? end : 0;
    all_first = max(all_first, __reduce_max_sync(0xFFFFFFFFu, first_end));
    before = __shfl_sync(0xFFFFFFFFu, end, 31);
    if (slot < task.slots && task.pairs != nullptr) {
      uint32_t rank = kNoPair;
      if (real && length > 0) rank = atomicAdd(&task.counts[2 * list + (first ? 0 : 1)], 1u) | (first ? 0 : kLater);
      task.ranks[query * task.slots + slot] = rank;
    }
  }
  // Entries after the last first slot begin at the end of all values.
  __syncwarp();
  for (int slot = lane; slot <= kMostFirstSlots; slot += 32) {
    const bool none = slot == kMostFirstSlots || slot >= task.slots || value_starts[slot] == 0xFFFFFFFFu;
    if (none) value_starts[slot] = all_first;
  }
}

struct Totals {
  uint32_t pairs;
  uint32_t first_items;
  uint32_t later_items;
};

__device__ inline Totals list_totals(const ScanCut& cut, uint32_t length, uint32_t first, uint32_t later) {
  Totals totals{first + later, 0, 0};
  if (totals.pairs == 0) return totals;
  const auto items = [&](const ScanPart& part, int run_rows) {
    return part.runs(run_rows) * part.groups(cut.group_queries);
  };
  if (first > 0) totals.first_items = items(first_part(cut, length, first), cut.first_run_rows);
  for (int part = 0; part < 2; ++part) {
    totals.later_items += items(later_part(cut, length, first, later, part), cut.later_run_rows);
  }
  return totals;
}

constexpr int kTogether = 4;  // lists whose counts and lengths are asked for at once

struct ListShape {
  uint2 pairs;  // first, later
  uint32_t length;
};

__device__ inline void load_shapes(const ProbePairsTask& task, int64_t list, int64_t end,
                                   ListShape (&shapes)[kTogether]) {
  KITH_UNROLL
  for (int i = 0; i < kTogether; ++i) {
    const int64_t at = list + i < end ? list + i : end - 1;
    shapes[i] = {load_vector<uint2>(task.counts + 2 * at),
                 static_cast<uint32_t>(task.lists.offsets[at + 1] - task.lists.offsets[at])};
  }
}

// By a block of kScanThreads: each has neighbouring lists.
__device__ void place_lists(const ProbePairsTask& task) {
  __shared__ Totals warps[kScanThreads / 32];
  const int64_t each = (task.lists.lists + kScanThreads - 1) / kScanThreads;
  const int64_t begin = threadIdx.x * each;
  const int64_t end = begin + each < task.lists.lists ? begin + each : task.lists.lists;
  Totals mine = {0, 0, 0};
  ListShape shapes[kTogether];
  for (int64_t list = begin; list < end; list += kTogether) {
    load_shapes(task, list, end, shapes);
    KITH_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      if (list + i >= end) break;
      const Totals one = list_totals(task.cut, shapes[i].length, shapes[i].pairs.x, shapes[i].pairs.y);
      mine.pairs += one.pairs;
      mine.first_items += one.first_items;
      mine.later_items += one.later_items;
    }
  }
  Totals sums = {warp_inclusive(mine.pairs), warp_inclusive(mine.first_items), warp_inclusive(mine.later_items)};
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x % 32 == 31) warps[warp] = sums;
  __syncthreads();
  if (warp == 0) {
    const Totals one = warps[threadIdx.x];
    const Totals up = {warp_inclusive(one.pairs), warp_inclusive(one.first_items), warp_inclusive(one.later_items)};
    warps[threadIdx.x] = {up.pairs - one.pairs, up.first_items - one.first_items, up.later_items - one.later_items};
  }
  __syncthreads();
  Totals at = {warps[warp].pairs + sums.pairs - mine.pairs,
               warps[warp].first_items + sums.first_items - mine.first_items,
               warps[warp].later_items + sums.later_items - mine.later_items};
  uint32_t* const later_items = task.items + task.lists.lists + 1;
  for (int64_t list = begin; list < end; list += kTogether) {
    if (each > kTogether) load_shapes(task, list, end, shapes);  // else they are still there
    KITH_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      if (list + i >= end) break;
      const Totals one = list_totals(task.cut, shapes[i].length, shapes[i].pairs.x, shapes[i].pairs.y);
      store_vector(task.starts + 2 * (list + i), uint2{at.pairs, at.pairs + shapes[i].pairs.x});
      task.items[list + i] = at.first_items;
      later_items[list + i] = at.later_items;
      at.pairs += one.pairs;
      at.first_items += one.first_items;
      at.later_items += one.later_items;
    }
  }
  // The thread behind the last list, which may have none itself.
  if (threadIdx.x == kScanThreads - 1) {
    task.starts[2 * task.lists.lists] = at.pairs;
    task.items[task.lists.lists] = at.first_items;
    later_items[task.lists.lists] = at.later_items;
  }
}

__device__ void place_pair(const ProbePairsTask& task, int64_t i) {
  const uint32_t rank = task.ranks[i];
  if (rank == kNoPair) return;
  const int64_t list = row_of(task.probes[i]);
  const uint32_t place = task.starts[2 * list + (rank >> 31)] + (rank & ~kLater);
  task.pairs[place] = {static_cast<uint32_t>(i / task.slots), static_cast<uint32_t>(i % task.slots)};
}

__global__ void __launch_bounds__(kThreads) count_pairs_kernel(ProbePairsTask task) {
  ptx::wait_for_kernel_before();
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (query < task.query_count) count_pairs(task, query);
}

__global__ void __launch_bounds__(kScanThreads) place_lists_kernel(ProbePairsTask task) {
  ptx::wait_for_kernel_before();
  place_lists(task);
}

__global__ void __launch_bounds__(kThreads) place_pairs_kernel(ProbePairsTask task) {
  ptx::wait_for_kernel_before();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < task.query_count * task.slots) place_pair(task, i);
}

// All three, where one block is enough.
__global__ void __launch_bounds__(kScanThreads) few_pairs_kernel(ProbePairsTask task) {
  ptx::wait_for_kernel_before();
  for (int64_t query = threadIdx.x / 32; query < task.query_count; query += kScanThreads / 32) count_pairs(task, query);
  __threadfence();
  __syncthreads();
  place_lists(task);
  __threadfence();
  __syncthreads();
  for (int64_t i = threadIdx.x; i < task.query_count * task.slots; i += kScanThreads) place_pair(task, i);
}

}  // namespace

void launch_probe_pairs(const ProbePairsTask& task, cudaStream_t stream) {
  if (task.query_count == 0) return;
  const Grid counting = Grid::of(divide_up(task.query_count, kWarps), kThreads).chained();
  if (task.pairs == nullptr) return launch(count_pairs_kernel, counting, stream, task);
  constexpr int64_t kFewPairs = 512;
  constexpr int64_t kFewLists = 16384;
  const int64_t pairs = task.query_count * task.slots;
  if (pairs <= kFewPairs && task.lists.lists <= kFewLists) {
    return launch(few_pairs_kernel, Grid::of(1, kScanThreads).chained(), stream, task);
  }
  launch(count_pairs_kernel, counting, stream, task);
  launch(place_lists_kernel, Grid::of(1, kScanThreads).chained(), stream, task);
  launch(place_pairs_kernel, Grid::over(pairs, kThreads).chained(), stream, task);
}

}  // namespace kith
