// The search of few vectors for few queries: canonical keys of all vectors of a query's lists, in one launch of short
// code. Blocks take runs of 64 neighbouring vectors; each sorts what it has found, and the one that is done last brings
// their lists together: the k-th smallest of their first entries is a bound of the k-th key, and only lists that begin
// within it are looked at.
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/last_block.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "ivf/scan/stored_key_cuda.hpp"
#include "ivf/search/list_steps_cuda.hpp"
#include "kernels/select/rank_select_cuda.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = kRankThreads;
constexpr int kRun = kThreads / kRowThreads;  // vectors that a block looks at together
constexpr int kSlotsTogether = 32;            // lists whose runs are counted together
constexpr int64_t kMostQueries = 4;
constexpr int64_t kMostK = kRankThreads;
constexpr int64_t kMostBlocks = kRankThreads;  // per query
constexpr int kRoom = 1024;                    // capacity of a block's list
static_assert(kMostK + kThreads <= kRoom);

// Runs of some lists: those of one follow those of the list before.
struct ListRuns {
  uint32_t lists[kSlotsTogether];
  int64_t begins[kSlotsTogether];
  int64_t ends[kSlotsTogether];
  int starts[kSlotsTogether + 1];

  // Counts the runs of slots first, first + 1, ... of a query. Called by a warp.
  __device__ void count(const ListRerankTask& task, int64_t query, int64_t first) {
    const int lane = lane_index();
    const uint64_t probe = first + lane < task.slots ? task.probes[query * task.slots + first + lane] : kPadding;
    const bool real = probe != kPadding && row_of(probe) < task.lists.lists;
    const uint32_t list = real ? row_of(probe) : 0;
    lists[lane] = list;
    begins[lane] = real ? task.lists.offsets[list] : 0;
    ends[lane] = real ? task.lists.offsets[list + 1] : 0;
    starts[lane + 1] = warp_inclusive(static_cast<int>((ends[lane] - begins[lane] + kRun - 1) / kRun));
    if (lane == 0) starts[0] = 0;
  }
  // Finds the slot that contains a run. Called by a warp.
  __device__ int place_of(int run) const { return __popc(__ballot_sync(kAllLanes, starts[lane_index()] <= run)) - 1; }
};
static_assert(kSlotsTogether == 32);

// The entries of a block; only the k smallest matter.
struct ShortList {
  uint64_t entries[kRoom];
  int count;

  // Makes room for kThreads entries. Every thread of the block, after a barrier.
  __device__ void cut(int k) {
    const int have = count;
    __syncthreads();
    if (have + kThreads <= kRoom) return;
    sort_long_list(entries, have);
    if (threadIdx.x == 0) count = k;
    __syncthreads();
  }
};

// The lists of all blocks, k entries each, sorted and padded, become one. Every thread of the last block.
__device__ __noinline__ void merge_lists(const uint64_t* lists, int blocks, int k, ShortList& found) {
  __shared__ __align__(16) uint32_t keys[kRankThreads + 4];
  __shared__ int chosen[kMostBlocks];
  __shared__ int chosen_count;
  const auto thread = static_cast<int>(threadIdx.x);
  const uint64_t first = thread < blocks ? __ldcg(lists + int64_t{thread} * k) : kPadding;
  if (thread == 0) chosen_count = found.count = 0;
  const uint32_t bound = kth_of_block(ordered_of(first), k, keys);
  if (first != kPadding && ordered_of(first) <= bound) chosen[atomicAdd(&chosen_count, 1)] = thread;
  __syncthreads();
  const int total = chosen_count * k;
  for (int start = 0; start < total; start += kThreads) {
    const int at = start + thread;
    const uint64_t entry = at < total ? __ldcg(lists + int64_t{chosen[at / k]} * k + at % k) : kPadding;
    if (entry != kPadding && ordered_of(entry) <= bound) found.entries[atomicAdd(&found.count, 1)] = entry;
    __syncthreads();
    found.cut(k);
  }
  sort_by_rank(found.entries, found.count);
}

template <typename Reader>
__global__ void __launch_bounds__(kThreads)
    list_short_kernel(const __grid_constant__ ListRerankTask task, DirectMemory given, int64_t code_bytes) {
  extern __shared__ __align__(16) double values[];  // the query
  __shared__ ShortList found;
  __shared__ ListRuns runs;
  const auto thread = static_cast<int>(threadIdx.x);
  const auto k = static_cast<int>(task.k);
  const auto blocks = static_cast<int>(gridDim.x);
  const int64_t query = blockIdx.y;
  const Reader reader(task.lists.codec, task.lists.codes);
  if (thread == 0) found.count = 0;
  ptx::wait_for_kernel_before();
  const double inverse_q = load_query(keys_of(task.lists), task.queries + query * task.query_stride, values);
  int before = 0;  // runs of earlier lists, modulo the number of blocks
  for (int64_t slot = 0; slot < task.slots; slot += kSlotsTogether) {
    __syncthreads();
    if (thread < 32) runs.count(task, query, slot);
    __syncthreads();
    const int total = runs.starts[kSlotsTogether];
    for (int run = (static_cast<int>(blockIdx.x) - before + blocks) % blocks; run < total; run += blocks) {
      const int place = runs.place_of(run);
      const int64_t position =
          runs.begins[place] + int64_t{run - runs.starts[place]} * kRun + thread / kRowThreads;
      if (position < runs.ends[place]) {
        const uint32_t row = task.lists.rows[position];
        if (task.kept == nullptr || is_kept(task.kept, row)) {
          const float key = stored_key(task.lists, reader, values, inverse_q, code_bytes,
                                       static_cast<uint32_t>(position), runs.lists[place]);
          if (thread % kRowThreads == 0) {
            found.entries[atomicAdd(&found.count, 1)] = pack_neighbor(ordered_key(key), row);
          }
        }
      }
      __syncthreads();
      found.cut(k);
    }
    before = (before + total) % blocks;
  }
  __syncthreads();
  sort_by_rank(found.entries, found.count);
  uint64_t* const lists = given.parts + query * blocks * k;
  if (thread < k) lists[blockIdx.x * k + thread] = thread < found.count ? found.entries[thread] : kPadding;
  if (!arrives_last(&given.arrived[query], static_cast<uint32_t>(blocks - 1))) return;
  merge_lists(lists, blocks, k, found);
  if (thread < k) task.neighbors[query * k + thread] = thread < found.count ? found.entries[thread] : kPadding;
}

}  // namespace

bool suits_list_short(const ListRerankTask& task) {
  constexpr int64_t kMostCols = 16'384;  // a query is in shared memory together with the lists
  const bool few = task.query_count <= kMostQueries && task.k <= kMostK;
  return task.candidates.entries == nullptr && few && task.lists.codec.format.cols <= kMostCols;
}

void launch_list_short(const ListRerankTask& task, const DirectMemory& memory, cudaStream_t stream) {
  const CodeFormat& format = task.lists.codec.format;
  const int64_t blocks = std::min<int64_t>(int64_t{2} * task.multiprocessors, kMostBlocks);
  const int64_t bytes = padded_cols(format.cols) * static_cast<int64_t>(sizeof(double));
  const Grid grid = Grid::of(blocks, task.query_count, kThreads).with_shared(bytes).chained();
  visit_reader(format, [&](auto tag) {
    const auto kernel = list_short_kernel<typename decltype(tag)::type>;
    allow_all_shared_memory(kernel);
    launch(kernel, grid, stream, task, memory, format.bytes());
  });
}

}  // namespace kith
