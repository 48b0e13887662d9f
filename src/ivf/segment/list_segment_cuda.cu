// Segments of lists on a GPU: residuals, sorting rows and codes by list (coding_steps_cuda.hpp), merging segments and
// removing rows that are not kept (list_segment.hpp).
#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_core.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/workspace_layout.hpp"
#include "ivf/segment/coding_steps_cuda.hpp"
#include "ivf/segment/device_lists_cuda.hpp"
#include "ivf/segment/list_segment.hpp"
#include "kernels/select/sort_pairs_cuda.hpp"
#include "rows/kept_rows.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

namespace kith {

namespace {

constexpr int kThreads = 256;

// A warp copies the codes of 32 vectors, each between two places: neighbouring lanes copy neighbouring units, so that
// reads and writes are as wide as codes allow.
//
// Lane i holds the source and destination of vector i; `count` of them are valid. All lanes must call this.
template <typename Unit>
__device__ inline void copy_codes(const uint8_t* from, uint8_t* to, int64_t code_bytes, int64_t from_place,
                                  int64_t to_place, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto units = static_cast<int>(code_bytes / static_cast<int64_t>(sizeof(Unit)));
  const Unit* const source = vectors<Unit>(from);
  Unit* const target = vectors<Unit>(to);
  for (int base = 0; base < count * units; base += 32) {
    const int at = base + lane;
    const int vector = at / units;
    const int64_t here = __shfl_sync(0xFFFFFFFFu, from_place, vector % 32);
    const int64_t there = __shfl_sync(0xFFFFFFFFu, to_place, vector % 32);
    if (vector < count) target[there * units + at % units] = source[here * units + at % units];
  }
}

// Calls use(Unit()) with the widest unit that divides a code; codes begin at multiples of 16 bytes.
template <typename Use>
void visit_code_unit(int64_t code_bytes, const Use& use) {
  if (code_bytes % 16 == 0) {
    use(uint4());
  } else if (code_bytes % 4 == 0) {
    use(uint32_t());
  } else {
    use(uint8_t());
  }
}

int bits_for(int64_t lists) {
  int bits = 1;
  while (int64_t{1} << bits < lists) ++bits;
  return bits;
}

struct SortLayout : WorkspaceLayout {
  explicit SortLayout(int64_t count) {
    keys = take<uint32_t>(count);
    for (Slot<uint32_t>& one : order) one = take<uint32_t>(count);
    sorting = take<std::byte>(sort_pairs_bytes(count));
  }
  Slot<uint32_t> keys;
  Slot<uint32_t> order[2];
  Slot<std::byte> sorting;
};

__global__ void __launch_bounds__(kThreads)
    number_rows_kernel(int32_t* labels, int64_t count, int64_t lists, uint32_t* order) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  if (labels[i] < 0 || labels[i] >= lists) labels[i] = 0;
  order[i] = static_cast<uint32_t>(i);
}

// Lists after the previous row's, up to this row's, begin at this row; those after the last row's begin at the end.
__global__ void __launch_bounds__(kThreads)
    offsets_kernel(const uint32_t* labels, int64_t count, int64_t lists, int64_t* offsets) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i > count) return;
  const int64_t first = i == 0 ? 0 : int64_t{labels[i - 1]} + 1;
  const int64_t last = i == count ? lists : int64_t{labels[i]};
  for (int64_t list = first; list <= last; ++list) offsets[list] = i;
}

template <typename Unit>
__global__ void __launch_bounds__(kThreads)
    place_rows_kernel(const uint32_t* order, int64_t count, uint32_t first_row, const uint8_t* codes,
                      int64_t code_bytes, uint8_t* sorted, uint32_t* rows) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t warp_first = i - threadIdx.x % 32;
  if (warp_first >= count) return;
  const int64_t from = i < count ? int64_t{order[i]} : 0;
  if (i < count) rows[i] = first_row + static_cast<uint32_t>(from);
  const int real = count - warp_first < 32 ? static_cast<int>(count - warp_first) : 32;
  copy_codes<Unit>(codes, sorted, code_bytes, from, i, real);
}

template <typename X>
__global__ void __launch_bounds__(kThreads) residual_kernel(ResidualTask task) {
  const auto* const rows = static_cast<const X*>(task.rows.data);
  const int64_t total = task.rows.count * task.cols;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < total; i += step) {
    const int64_t row = i / task.cols;
    const int64_t col = i - row * task.cols;
    const float value = static_cast<float>(rows[row * task.rows.stride + col]);
    if (task.centres == nullptr) {
      task.residuals[i] = value;
      continue;
    }
    const int64_t given = task.lists[row];
    const int64_t list = given < 0 || given >= task.centre_count ? 0 : given;
    task.residuals[i] = __fsub_rn(value, task.centres[list * task.cols + col]);
  }
}

__global__ void __launch_bounds__(kThreads) narrow_kernel(const int64_t* lists, int64_t count, int32_t* narrow) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) narrow[i] = static_cast<int32_t>(lists[i]);
}

}  // namespace

void launch_residuals(const ResidualTask& task, cudaStream_t stream) {
  const int64_t blocks = std::min<int64_t>(divide_up(task.rows.count * task.cols, int64_t{kThreads}), int64_t{1} << 20);
  visit_dtype(task.rows.dtype,
              [&]<typename T>(StoredAs<T>) { launch(residual_kernel<T>, Grid::of(blocks, kThreads), stream, task); });
}

void launch_narrow_lists(const int64_t* lists, int64_t count, int32_t* narrow, cudaStream_t stream) {
  launch(narrow_kernel, Grid::over(count, kThreads), stream, lists, count, narrow);
}

int64_t sort_lists_bytes(int64_t count) { return SortLayout(count).bytes; }

void launch_sort_lists(const SortListsTask& task, std::byte* memory, cudaStream_t stream) {
  const SortLayout at(task.count);
  const SortPairsTask sort{.keys = {vectors<uint32_t>(task.labels), at.keys.in(memory)},
                           .values = {at.order[0].in(memory), at.order[1].in(memory)},
                           .count = task.count,
                           .bits = bits_for(task.lists),
                           .memory = at.sorting.in(memory)};
  launch(number_rows_kernel, Grid::over(task.count, kThreads), stream, task.labels, task.count, task.lists,
         sort.values[0]);
  const int end = launch_sort_pairs(sort, stream);
  launch(offsets_kernel, Grid::over(task.count + 1, kThreads), stream, sort.keys[end], task.count, task.lists,
         task.offsets);
  visit_code_unit(task.code_bytes, [&](auto unit) {
    launch(place_rows_kernel<decltype(unit)>, Grid::over(task.count, kThreads), stream, sort.values[end], task.count,
           task.first_row, task.codes, task.code_bytes, task.sorted_codes, task.rows);
  });
}

namespace {

__global__ void __launch_bounds__(kThreads) add_offsets_kernel(const int64_t* from, int64_t count, int64_t* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) to[i] += from[i];
}

template <typename Unit>
__global__ void __launch_bounds__(kThreads)
    append_lists_kernel(ListArrays from, int64_t lists, int64_t code_bytes, ListArrays to, const int64_t* next) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t warp_first = i - threadIdx.x % 32;
  if (warp_first >= from.count) return;
  const int real = from.count - warp_first < 32 ? static_cast<int>(from.count - warp_first) : 32;
  const int64_t first = list_of_warp(from.offsets, lists, warp_first);
  const int64_t last = list_of_warp(from.offsets, lists, warp_first + real - 1);
  int64_t target = 0;
  if (i < from.count) {
    const int64_t list = list_between(from.offsets, first, last, i);
    target = next[list] + i - from.offsets[list];
    to.rows[target] = from.rows[i];
  }
  copy_codes<Unit>(from.codes, to.codes, code_bytes, i, target, real);
}

__global__ void __launch_bounds__(kThreads) advance_kernel(const int64_t* offsets, int64_t lists, int64_t* next) {
  const int64_t list = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (list < lists) next[list] += offsets[list + 1] - offsets[list];
}

// Appends the vectors of a segment to each list; `next`: the place of each list's next vector.
void append_lists(const ListArrays& from, int64_t lists, int64_t code_bytes, const ListArrays& to, int64_t* next,
                  cudaStream_t stream) {
  if (from.count == 0) return;
  visit_code_unit(code_bytes, [&](auto unit) {
    launch(append_lists_kernel<decltype(unit)>, Grid::over(from.count, kThreads), stream, from, lists, code_bytes, to,
           next);
  });
  launch(advance_kernel, Grid::over(lists, kThreads), stream, from.offsets, lists, next);
}

}  // namespace

// Concatenates the lists of the segments. Takes a few passes over
// the offsets, one read and one write of all vectors.
Segment merge_on_device(const std::vector<Segment>& segments, const Resources& resources) {
  if (segments.size() == 1) return segments.front();
  const int device = segments.front()->space().device;
  const int64_t lists = segments.front()->lists();
  const int64_t code_bytes = segments.front()->code_bytes();
  int64_t size = 0;
  for (const Segment& segment : segments) size += segment->size();
  const DeviceGuard guard(device);
  const auto context = std::make_shared<const DeviceContext>(device, resources.options().stream);
  const auto merged = std::make_shared<ListSegment>(device, lists, size, code_bytes, resources);
  const DeviceArray<int64_t> next(lists, "the merging of lists", context, resources);
  const ListArrays to = merged->to_fill();
  context->fill(to.offsets, 0, lists + 1);
  for (const Segment& segment : segments) {
    launch(add_offsets_kernel, Grid::over(lists + 1, kThreads), context->stream(), segment->offsets(), lists + 1,
           to.offsets);
  }
  context->copy_values(next.data(), to.offsets, lists);
  for (const Segment& segment : segments) {
    append_lists(segment->to_fill(), lists, code_bytes, to, next.data(), context->stream());
  }
  context->synchronize();
  return merged;
}

namespace {

// The rows to keep, on the device, in the format of KeptRows.
struct KeptBits {
  const uint64_t* bits = nullptr;
  const uint32_t* ranks = nullptr;  // number of kept rows before each 4,096th
};

constexpr int64_t kShrinkRun = 1024;  // vectors counted together
constexpr int kShrinkThreads = static_cast<int>(kShrinkRun);
constexpr int kShrinkWarps = kShrinkThreads / 32;

// The number of kept vectors of this block before this thread's. All threads must call this.
__device__ uint32_t kept_before_in_run(bool stays, uint32_t* warps) {
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  const unsigned who = __ballot_sync(0xFFFFFFFFu, stays);
  if (threadIdx.x % 32 == 0) warps[warp] = static_cast<uint32_t>(__popc(who));
  __syncthreads();
  uint32_t before = 0;
  for (int other = 0; other < warp; ++other) before += warps[other];
  return before + static_cast<uint32_t>(__popc(who & ((1u << threadIdx.x % 32) - 1)));
}

__global__ void __launch_bounds__(kShrinkThreads) count_kept_kernel(ListArrays from, KeptBits kept, uint32_t* counts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kShrinkThreads + threadIdx.x;
  const int count = __syncthreads_count(i < from.count && is_kept(kept.bits, from.rows[i]));
  if (threadIdx.x == 0) counts[blockIdx.x] = static_cast<uint32_t>(count);
}

// Exclusive prefix sum of the counts, by a single block; each thread has consecutive counts.
__global__ void __launch_bounds__(kShrinkThreads) sum_counts_kernel(uint32_t* counts, int64_t runs) {
  __shared__ uint32_t sums[kShrinkThreads];
  const int64_t each = (runs + kShrinkThreads - 1) / kShrinkThreads;
  const int64_t begin = threadIdx.x * each;
  const int64_t end = begin + each < runs ? begin + each : runs;
  uint32_t mine = 0;
  for (int64_t i = begin; i < end; ++i) mine += counts[i];
  sums[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned apart = 1; apart < kShrinkThreads; apart *= 2) {
    const uint32_t more = threadIdx.x >= apart ? sums[threadIdx.x - apart] : 0;
    __syncthreads();
    sums[threadIdx.x] += more;
    __syncthreads();
  }
  uint32_t before = sums[threadIdx.x] - mine;
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t count = counts[i];
    counts[i] = before;
    before += count;
  }
  if (threadIdx.x == kShrinkThreads - 1) counts[runs] = sums[threadIdx.x];
}

__device__ uint32_t new_number(const KeptBits& kept, uint32_t row) {
  uint32_t number = kept.ranks[row / KeptRows::kRankRows];
  const uint32_t word = row / 64;
  for (uint32_t i = row / KeptRows::kRankRows * (KeptRows::kRankRows / 64); i < word; ++i) {
    number += static_cast<uint32_t>(__popcll(kept.bits[i]));
  }
  return number + static_cast<uint32_t>(__popcll(kept.bits[word] & ((uint64_t{1} << row % 64) - 1)));
}

template <typename Unit>
__global__ void __launch_bounds__(kShrinkThreads)
    keep_vectors_kernel(ListArrays from, int64_t code_bytes, KeptBits kept, const uint32_t* before, ListArrays to) {
  __shared__ uint32_t warps[kShrinkWarps];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kShrinkThreads + threadIdx.x;
  const bool stays = i < from.count && is_kept(kept.bits, from.rows[i]);
  const int64_t target = int64_t{before[blockIdx.x]} + kept_before_in_run(stays, warps);
  if (stays) to.rows[target] = new_number(kept, from.rows[i]);
  // Compacts the kept vectors of the warp.
  const unsigned who = __ballot_sync(0xFFFFFFFFu, stays);
  const int64_t first = __shfl_sync(0xFFFFFFFFu, target, who == 0 ? 0 : __ffs(static_cast<int>(who)) - 1);
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t nth = i - lane + static_cast<int64_t>(__fns(who, 0, lane + 1));  // only used below the kept count
  copy_codes<Unit>(from.codes, to.codes, code_bytes, nth, first + lane, __popc(who));
}

// Each list begins after the vectors kept before its first. One warp per list.
__global__ void __launch_bounds__(kShrinkThreads)
    kept_offsets_kernel(ListArrays from, int64_t lists, KeptBits kept, const uint32_t* before, ListArrays to) {
  const int64_t list = static_cast<int64_t>(blockIdx.x) * kShrinkWarps + threadIdx.x / 32;
  if (list > lists) return;
  const int64_t place = from.offsets[list];
  const int64_t run = place / kShrinkRun;
  uint32_t count = 0;
  for (int64_t i = run * kShrinkRun + threadIdx.x % 32; i < place; i += 32) count += is_kept(kept.bits, from.rows[i]);
  count = __reduce_add_sync(0xFFFFFFFFu, count);
  if (threadIdx.x % 32 == 0) to.offsets[list] = int64_t{before[run]} + count;
}

}  // namespace

// Counts per run of vectors, their prefix sums, then one read and one write of the kept vectors.
Segment without_on_device(const ListSegment& segment, const KeptRows& kept, int64_t rows, const Resources& resources) {
  const DeviceGuard guard(segment.space().device);
  const auto context = std::make_shared<const DeviceContext>(segment.space().device, resources.options().stream);
  const cudaStream_t stream = context->stream();
  const int64_t runs = divide_up(segment.size(), kShrinkRun);
  constexpr std::string_view kPurpose = "the removal from lists";
  const DeviceArray<uint64_t> bits(KeptRows::words_for(rows), kPurpose, context, resources);
  const DeviceArray<uint32_t> ranks(KeptRows::ranks_for(rows), kPurpose, context, resources);
  // The number of vectors kept before each run; the last entry is the total.
  const DeviceArray<uint32_t> before(runs + 1, kPurpose, context, resources);
  context->copy_values<uint64_t>(bits.data(), kept.bits(), bits.size());
  context->copy_values<uint32_t>(ranks.data(), kept.ranks(), ranks.size());
  const KeptBits there{bits.data(), ranks.data()};
  const ListArrays from = segment.to_fill();
  launch(count_kept_kernel, Grid::of(runs, kShrinkThreads), stream, from, there, before.data());
  launch(sum_counts_kernel, Grid::of(1, kShrinkThreads), stream, before.data(), runs);
  uint32_t stay = 0;
  context->copy_values<uint32_t>(&stay, before.data() + runs, 1);
  context->synchronize();
  const auto left =
      std::make_shared<ListSegment>(segment.space().device, segment.lists(), stay, segment.code_bytes(), resources);
  launch(kept_offsets_kernel, Grid::of(divide_up(segment.lists() + 1, kShrinkWarps), kShrinkThreads), stream, from,
         segment.lists(), there, before.data(), left->to_fill());
  visit_code_unit(segment.code_bytes(), [&](auto unit) {
    launch(keep_vectors_kernel<decltype(unit)>, Grid::of(runs, kShrinkThreads), stream, from, segment.code_bytes(),
           there, before.data(), left->to_fill());
  });
  context->synchronize();
  return left;
}

}  // namespace kith
