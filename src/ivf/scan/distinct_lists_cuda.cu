#include "ivf/scan/distinct_lists_cuda.hpp"

#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/warp.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__global__ void __launch_bounds__(kThreads)
    count_distinct_kernel(const int64_t* offsets, const uint16_t* ranks, uint32_t most, uint32_t* counts) {
  __shared__ uint32_t found;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  uint32_t mine = 0;
  for (int64_t i = offsets[blockIdx.x] + threadIdx.x; i < offsets[blockIdx.x + 1]; i += kThreads) {
    mine += ranks[i] < most ? 1u : 0u;
  }
  mine = warp_sum(mine);
  if (lane_index() == 0) atomicAdd(&found, mine);
  __syncthreads();
  if (threadIdx.x == 0) counts[blockIdx.x] = found;
}

struct GatherDistinct {
  const int64_t* offsets;
  const uint8_t* codes;
  const uint32_t* rows;
  const uint16_t* ranks;
  int64_t code_bytes;
  uint32_t most;
};

__global__ void __launch_bounds__(kThreads) gather_distinct_kernel(GatherDistinct from, DistinctTarget to) {
  __shared__ int totals[kWarps];
  const int64_t end = from.offsets[blockIdx.x + 1];
  int64_t next = to.offsets[blockIdx.x];
  for (int64_t first = from.offsets[blockIdx.x]; first < end; first += kThreads) {
    const int64_t i = first + threadIdx.x;
    const bool stays = i < end && from.ranks[i] < from.most;
    const unsigned lanes = __ballot_sync(kAllLanes, stays);
    if (lane_index() == 0) totals[threadIdx.x / 32] = __popc(lanes);
    __syncthreads();
    int before = __popc(lanes & ((1u << lane_index()) - 1));
    int all = 0;
    for (int warp = 0; warp < kWarps; ++warp) {
      if (warp < static_cast<int>(threadIdx.x / 32)) before += totals[warp];
      all += totals[warp];
    }
    if (stays) {
      const int64_t at = next + before;
      to.rows[at] = from.rows[i];
      to.ranks[at] = from.ranks[i];
      for (int64_t byte = 0; byte < from.code_bytes; ++byte) {
        to.codes[at * from.code_bytes + byte] = from.codes[i * from.code_bytes + byte];
      }
    }
    next += all;
    __syncthreads();  // the totals have been read
  }
}

}  // namespace

void launch_count_distinct(const DistinctLists& from, uint32_t* counts, cudaStream_t stream) {
  launch(count_distinct_kernel, Grid::of(from.lists.lists, kThreads), stream, from.lists.offsets, from.ranks, from.most,
         counts);
}

void launch_gather_distinct(const DistinctLists& from, const DistinctTarget& to, cudaStream_t stream) {
  const DeviceListsView& lists = from.lists;
  launch(gather_distinct_kernel, Grid::of(lists.lists, kThreads), stream,
         {lists.offsets, lists.codes, lists.rows, from.ranks, lists.codec.format.bytes(), from.most}, to);
}

}  // namespace kith
