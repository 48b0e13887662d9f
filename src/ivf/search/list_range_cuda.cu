#include "ivf/search/list_range_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/stored_key_cuda.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kTogether = kThreads / kRowThreads;  // vectors at a time

template <typename Reader>
__global__ void __launch_bounds__(kThreads)
    list_range_kernel(const __grid_constant__ ListRangeTask task, int64_t code_bytes) {
  extern __shared__ __align__(16) double values[];
  const auto thread = static_cast<int>(threadIdx.x);
  const Reader reader(task.lists.codec, task.lists.codes);
  const uint32_t most = ordered_key(task.most);
  for (int64_t work = blockIdx.x; work < task.query_count * task.slots; work += gridDim.x) {
    const int64_t query = work / task.slots;
    const uint64_t probe = task.probes[work];
    if (probe == kPadding || row_of(probe) >= task.lists.lists) continue;
    const uint32_t number = row_of(probe);
    const int64_t end = task.lists.offsets[number + 1];
    const int64_t begin = task.lists.offsets[number];
    if (begin == end) continue;
    __syncthreads();
    const double inverse_q = load_query(keys_of(task.lists), task.queries + query * task.query_stride, values);
    for (int64_t first = begin; first < end; first += kTogether) {
      const int64_t position = first + thread / kRowThreads;
      bool hit = false;
      uint64_t entry = 0;
      if (position < end && (task.kept == nullptr || is_kept(task.kept, task.lists.rows[position]))) {
        const float key =
            stored_key(task.lists, reader, values, inverse_q, code_bytes, static_cast<uint32_t>(position), number);
        entry = pack_neighbor(ordered_key(key), task.lists.rows[position]);
        hit = thread % kRowThreads == 0 && ordered_of(entry) <= most;
      }
      const unsigned hits = __ballot_sync(0xFFFFFFFFu, hit);
      if (hits == 0) continue;
      const int lane = thread % 32;
      unsigned long long place = 0;
      if (lane == 0) {
        place = atomicAdd(task.hits.total, static_cast<unsigned long long>(__popc(hits)));
        atomicAdd(task.hits.counts + query, static_cast<uint32_t>(__popc(hits)));
      }
      place = __shfl_sync(0xFFFFFFFFu, place, 0) + static_cast<unsigned long long>(__popc(hits & ((1u << lane) - 1)));
      if (!hit || static_cast<int64_t>(place) >= task.hits.capacity) continue;
      task.hits.neighbors[place] = entry;
      task.hits.queries[place] = static_cast<uint32_t>(query);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    group_hits_kernel(ListRangeHits hits, int64_t count, int64_t* starts, uint64_t* grouped) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  auto* const start = vectors<unsigned long long>(starts + hits.queries[i]);
  grouped[atomicAdd(start, 1ull)] = hits.neighbors[i];
}

}  // namespace

void launch_list_range(const ListRangeTask& task, cudaStream_t stream) {
  const int64_t work = task.query_count * task.slots;
  if (work == 0) return;
  constexpr int64_t kBlocksEach = 16;  // of a multiprocessor: lists are not equally long
  const CodeFormat& format = task.lists.codec.format;
  const Grid grid = Grid::of(std::min<int64_t>(work, kBlocksEach * task.multiprocessors), kThreads)
                        .with_shared(8 * padded_cols(format.cols));
  visit_reader(format, [&](auto tag) {
    const auto kernel = list_range_kernel<typename decltype(tag)::type>;
    allow_all_shared_memory(kernel);
    launch(kernel, grid, stream, task, format.bytes());
  });
}

void launch_group_hits(const ListRangeHits& hits, int64_t count, int64_t* starts, uint64_t* grouped,
                       cudaStream_t stream) {
  launch(group_hits_kernel, Grid::over(count, kThreads), stream, hits, count, starts, grouped);
}

}  // namespace kith
