#include "ivf/search/probe_limits_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "rows/kept_rows_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) pack_probes_kernel(const int64_t* lists, int64_t count, uint64_t* packed) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  packed[i] = lists[i] < 0 ? kPadding : pack_neighbor(0, static_cast<uint32_t>(lists[i]));
}

// A warp for each list.
__global__ void __launch_bounds__(kThreads)
    list_sizes_kernel(DeviceListsView lists, const uint64_t* kept, uint32_t* sizes) {
  const int64_t list = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (list >= lists.lists) return;
  const int64_t begin = lists.offsets[list];
  const int64_t end = lists.offsets[list + 1];
  uint32_t count = kept == nullptr ? static_cast<uint32_t>(end - begin) : 0;
  if (kept != nullptr) {
    for (int64_t i = begin + threadIdx.x % 32; i < end; i += 32) count += is_kept(kept, lists.rows[i]) ? 1 : 0;
    count = __reduce_add_sync(0xFFFFFFFFu, count);
  }
  if (threadIdx.x % 32 == 0) sizes[list] += count;
}

// A thread for each query: it looks at few of its slots, as a rule.
__global__ void __launch_bounds__(kThreads) probe_limits_kernel(ProbeLimitsTask task) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (query >= task.queries) return;
  uint64_t* const probes = task.probes + query * task.slots;
  int64_t held = 0;
  int64_t taken = 0;
  while (taken < task.slots && (taken < task.asked || held < task.least)) {
    const uint64_t probe = probes[taken++];
    if (probe != kPadding && row_of(probe) < task.lists) held += task.sizes[row_of(probe)];
  }
  if (held < task.least && task.slots < task.lists) {
    task.short_queries[atomicAdd(task.short_count, 1u)] = static_cast<uint32_t>(query);
    taken = 0;
  }
  for (int64_t slot = taken; slot < task.slots; ++slot) probes[slot] = kPadding;
}

}  // namespace

void launch_pack_probes(const int64_t* lists, int64_t count, uint64_t* packed, cudaStream_t stream) {
  launch(pack_probes_kernel, Grid::over(count, kThreads), stream, lists, count, packed);
}

void launch_add_list_sizes(const DeviceListsView& lists, const uint64_t* kept, uint32_t* sizes, cudaStream_t stream) {
  launch(list_sizes_kernel, Grid::over(lists.lists * 32, kThreads), stream, lists, kept, sizes);
}

void launch_probe_limits(const ProbeLimitsTask& task, cudaStream_t stream) {
  launch(probe_limits_kernel, Grid::over(task.queries, kThreads), stream, task);
}

}  // namespace kith
