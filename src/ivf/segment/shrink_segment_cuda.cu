// without_on_device() of list_segment.hpp: counts of runs of vectors, their sums, one read and one write of what stays.
#include "core/divide.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_core.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/launch.hpp"
#include "ivf/segment/copy_codes_cuda.hpp"
#include "ivf/segment/list_segment.hpp"
#include "rows/kept_rows_cuda.hpp"
#include "rows/kept_rows.hpp"

namespace kith {
namespace {

// Rows that stay, on the device: as KeptRows has them.
struct KeptBits {
  const uint64_t* bits = nullptr;
  const uint32_t* ranks = nullptr;  // how many are kept before each 4,096th
};

constexpr int64_t kShrinkRun = 1024;  // vectors that are counted together
constexpr int kThreads = static_cast<int>(kShrinkRun);
constexpr int kWarps = kThreads / 32;

// Of this block's vectors that are kept: those before this thread's. All threads.
__device__ uint32_t kept_before_in_run(bool stays, uint32_t* warps) {
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  const unsigned who = __ballot_sync(0xFFFFFFFFu, stays);
  if (threadIdx.x % 32 == 0) warps[warp] = static_cast<uint32_t>(__popc(who));
  __syncthreads();
  uint32_t before = 0;
  for (int other = 0; other < warp; ++other) before += warps[other];
  return before + static_cast<uint32_t>(__popc(who & ((1u << threadIdx.x % 32) - 1)));
}

__global__ void __launch_bounds__(kThreads) count_kept_kernel(ListArrays from, KeptBits kept, uint32_t* counts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int count = __syncthreads_count(i < from.count && is_kept(kept.bits, from.rows[i]));
  if (threadIdx.x == 0) counts[blockIdx.x] = static_cast<uint32_t>(count);
}

// One block: each thread has neighbouring counts. What a run has becomes what is before it.
__global__ void __launch_bounds__(kThreads) sum_counts_kernel(uint32_t* counts, int64_t runs) {
  __shared__ uint32_t sums[kThreads];
  const int64_t each = (runs + kThreads - 1) / kThreads;
  const int64_t begin = threadIdx.x * each;
  const int64_t end = begin + each < runs ? begin + each : runs;
  uint32_t mine = 0;
  for (int64_t i = begin; i < end; ++i) mine += counts[i];
  sums[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned apart = 1; apart < kThreads; apart *= 2) {
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
  if (threadIdx.x == kThreads - 1) counts[runs] = sums[threadIdx.x];
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
__global__ void __launch_bounds__(kThreads)
    keep_vectors_kernel(ListArrays from, int64_t code_bytes, KeptBits kept, const uint32_t* before, ListArrays to) {
  __shared__ uint32_t warps[kWarps];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const bool stays = i < from.count && is_kept(kept.bits, from.rows[i]);
  const int64_t target = int64_t{before[blockIdx.x]} + kept_before_in_run(stays, warps);
  if (stays) to.rows[target] = new_number(kept, from.rows[i]);
  // The lanes' vectors that stay, one after the other.
  const unsigned who = __ballot_sync(0xFFFFFFFFu, stays);
  const int64_t first = __shfl_sync(0xFFFFFFFFu, target, who == 0 ? 0 : __ffs(static_cast<int>(who)) - 1);
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t nth = i - lane + static_cast<int64_t>(__fns(who, 0, lane + 1));  // only used below the count
  copy_codes<Unit>(from.codes, to.codes, code_bytes, nth, first + lane, __popc(who));
}

// Where each list begins: as many vectors as are kept before its first. A warp for each.
__global__ void __launch_bounds__(kThreads)
    kept_offsets_kernel(ListArrays from, int64_t lists, KeptBits kept, const uint32_t* before, ListArrays to) {
  const int64_t list = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (list > lists) return;
  const int64_t place = from.offsets[list];
  const int64_t run = place / kShrinkRun;
  uint32_t count = 0;
  for (int64_t i = run * kShrinkRun + threadIdx.x % 32; i < place; i += 32) count += is_kept(kept.bits, from.rows[i]);
  count = __reduce_add_sync(0xFFFFFFFFu, count);
  if (threadIdx.x % 32 == 0) to.offsets[list] = int64_t{before[run]} + count;
}

}  // namespace

Segment without_on_device(const ListSegment& segment, const KeptRows& kept, int64_t rows,
                               const Resources& resources) {
  const DeviceGuard guard(segment.space().device);
  const auto context = std::make_shared<const DeviceContext>(segment.space().device, resources.options().stream);
  const cudaStream_t stream = context->stream();
  const int64_t runs = divide_up(segment.size(), kShrinkRun);
  constexpr std::string_view kPurpose = "the removal from lists";
  const DeviceArray<uint64_t> bits(KeptRows::words_for(rows), kPurpose, context, resources);
  const DeviceArray<uint32_t> ranks(KeptRows::ranks_for(rows), kPurpose, context, resources);
  // Of each run how many are kept before it, and behind the last how many there are.
  const DeviceArray<uint32_t> before(runs + 1, kPurpose, context, resources);
  context->copy_values<uint64_t>(bits.data(), kept.bits(), bits.size());
  context->copy_values<uint32_t>(ranks.data(), kept.ranks(), ranks.size());
  const KeptBits there{bits.data(), ranks.data()};
  const ListArrays from = segment.to_fill();
  launch(count_kept_kernel, Grid::of(runs, kThreads), stream, from, there, before.data());
  launch(sum_counts_kernel, Grid::of(1, kThreads), stream, before.data(), runs);
  uint32_t stay = 0;
  context->copy_values<uint32_t>(&stay, before.data() + runs, 1);
  context->synchronize();
  const auto left =
      std::make_shared<ListSegment>(segment.space().device, segment.lists(), stay, segment.code_bytes(), resources);
  launch(kept_offsets_kernel, Grid::of(divide_up(segment.lists() + 1, kWarps), kThreads), stream, from,
         segment.lists(), there, before.data(), left->to_fill());
  visit_code_unit(segment.code_bytes(), [&](auto unit) {
    launch(keep_vectors_kernel<decltype(unit)>, Grid::of(runs, kThreads), stream, from, segment.code_bytes(), there,
           before.data(), left->to_fill());
  });
  context->synchronize();
  return left;
}

}  // namespace kith
