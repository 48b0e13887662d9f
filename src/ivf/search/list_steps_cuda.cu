#include "ivf/search/list_steps_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/stored_key_cuda.hpp"
#include "kernels/select/select_entry.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace kith {

namespace {

constexpr int kThreads = 256;

// One thread per part of a vector: four values, or one.
template <typename Part>
__global__ void __launch_bounds__(kThreads)
    place_vectors_kernel(const Part* from, const uint32_t* numbers, int64_t count, int64_t each, int64_t rows, Part* to,
                         uint32_t* filled) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count * each) return;
  const int64_t part = i % each;
  const uint32_t row = numbers[i / each];
  uint32_t* const misplaced = filled + (rows + 31) / 32;
  if (row >= rows) {
    *misplaced = 1;
    return;
  }
  to[row * each + part] = from[i];
  if (part == 0 && (atomicOr(filled + row / 32, 1u << (row % 32)) >> (row % 32) & 1u) != 0) *misplaced = 1;
}

__global__ void __launch_bounds__(kThreads)
    count_probing_kernel(const uint64_t* probes, int64_t count, DeviceListsView lists, int64_t least,
                         uint32_t* counts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count || probes[i] == kPadding || row_of(probes[i]) >= lists.lists) return;
  const uint32_t list = row_of(probes[i]);
  if (lists.offsets[list + 1] - lists.offsets[list] >= least) atomicAdd(counts + list, 1u);
}

// A thread for each query.
__global__ void __launch_bounds__(kThreads)
    list_probing_kernel(const uint64_t* probes, int64_t queries, int64_t slots, uint32_t list, uint32_t* found) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (query >= queries) return;
  for (int64_t slot = 0; slot < slots; ++slot) {
    const uint64_t probe = probes[query * slots + slot];
    if (probe == kPadding || row_of(probe) != list) continue;
    found[1 + atomicAdd(found, 1u)] = static_cast<uint32_t>(query);
    return;
  }
}

__global__ void __launch_bounds__(kThreads) pack_probes_kernel(const int64_t* lists, int64_t count, uint64_t* packed) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  packed[i] = lists[i] < 0 ? kPadding : pack_neighbor(0, static_cast<uint32_t>(lists[i]));
}

// One warp per list.
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

// One thread per query: usually it reads few of its slots.
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

// A thread for each entry of both lists. Padding of the first list comes behind all that is real; that of the second
// would come to the same places.
__global__ void __launch_bounds__(kThreads)
    merge_found_kernel(const uint64_t* a, const uint64_t* b, int64_t queries, int64_t k, uint64_t* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= 2 * queries * k) return;
  const int64_t query = i / (2 * k);
  const int64_t at = i % (2 * k);
  const bool first = at < k;
  const int64_t place = first ? at : at - k;
  const uint64_t* const own = (first ? a : b) + query * k;
  const uint64_t* const other = (first ? b : a) + query * k;
  const uint64_t entry = own[place];
  if (!first && entry == kPadding) return;
  const int64_t to = place + rank_in_list(other, k, entry);
  if (to < k) out[query * k + to] = entry;
}

constexpr int kTogether = kThreads / kRowThreads;  // vectors per block at a time

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

__global__ void __launch_bounds__(kThreads)
    leave_out_probes_kernel(const uint64_t* probes, int64_t count, const uint8_t* marks, uint64_t* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const uint64_t probe = probes[i];
  out[i] = probe == kPadding || marks[row_of(probe)] == 0 ? probe : kPadding;
}

__global__ void __launch_bounds__(kThreads)
    pack_found_kernel(const int64_t* ids, const float* keys, int64_t count, const uint32_t* rows, uint64_t* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) out[i] = ids[i] < 0 ? kPadding : pack_neighbor(ordered_key(keys[i]), rows[ids[i]]);
}

// `takes` gathers by number; otherwise scatters.
__global__ void __launch_bounds__(kThreads)
    move_found_kernel(const uint64_t* from, const uint32_t* numbers, int64_t m, int64_t k, uint64_t* to, bool takes) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= m * k) return;
  const int64_t place = int64_t{numbers[i / k]} * k + i % k;
  to[takes ? i : place] = from[takes ? place : i];
}

// A thread for each query.
__global__ void __launch_bounds__(kThreads)
    shorten_reaches_kernel(const __grid_constant__ ListSelectTask task, QueryBounds bounds) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (query >= task.query_count) return;
  const uint64_t last = bounds.of(query);
  if (last == kPadding) return;
  const double reach = reach_of(task.lists.key(), last, operand_scale(*task.prepared.largest));
  // Rounded up. Not read for queries marked uncertain.
  if (reach < task.reaches[query]) task.reaches[query] = __double2float_ru(reach);
}

// A thread for each query.
__global__ void __launch_bounds__(kThreads)
    lower_bounds_kernel(const uint64_t* found, int64_t queries, int64_t k, uint64_t* bounds) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (query >= queries) return;
  const uint64_t last = found[query * k + k - 1];
  if (last != kPadding && last + 1 < bounds[query]) bounds[query] = last + 1;
}

}  // namespace

void launch_shorten_reaches(const ListSelectTask& task, const QueryBounds& bounds, cudaStream_t stream) {
  const ListKey key = task.lists.key();
  if (!key.has_distances() || key.unit) return;
  launch(shorten_reaches_kernel, Grid::over(task.query_count, kThreads), stream, task, bounds);
}

void launch_lower_bounds(const uint64_t* found, int64_t queries, int64_t k, uint64_t* bounds, cudaStream_t stream) {
  launch(lower_bounds_kernel, Grid::over(queries, kThreads), stream, found, queries, k, bounds);
}

void launch_pack_probes(const int64_t* lists, int64_t count, uint64_t* packed, cudaStream_t stream) {
  launch(pack_probes_kernel, Grid::over(count, kThreads), stream, lists, count, packed);
}

void launch_add_list_sizes(const DeviceListsView& lists, const uint64_t* kept, uint32_t* sizes, cudaStream_t stream) {
  launch(list_sizes_kernel, Grid::over(lists.lists * 32, kThreads), stream, lists, kept, sizes);
}

void launch_probe_limits(const ProbeLimitsTask& task, cudaStream_t stream) {
  launch(probe_limits_kernel, Grid::over(task.queries, kThreads), stream, task);
}

void launch_place_vectors(const DeviceListsView& lists, int64_t rows, float* out, uint32_t* filled,
                          cudaStream_t stream) {
  const int64_t cols = lists.codec.format.cols;
  const auto place = [&](const auto* from, auto* to, int64_t each) {
    launch(place_vectors_kernel<std::remove_pointer_t<decltype(to)>>, Grid::over(lists.count * each, kThreads), stream,
           from, lists.rows, lists.count, each, rows, to, filled);
  };
  const bool fours = cols % 4 == 0 && reinterpret_cast<uintptr_t>(lists.codes) % 16 == 0;
  if (fours) return place(reinterpret_cast<const float4*>(lists.codes), reinterpret_cast<float4*>(out), cols / 4);
  place(reinterpret_cast<const float*>(lists.codes), out, cols);
}

void launch_count_probing(const uint64_t* probes, int64_t count, const DeviceListsView& lists, int64_t least,
                          uint32_t* counts, cudaStream_t stream) {
  launch(count_probing_kernel, Grid::over(count, kThreads), stream, probes, count, lists, least, counts);
}

void launch_list_probing(const uint64_t* probes, int64_t queries, int64_t slots, uint32_t list, uint32_t* found,
                         cudaStream_t stream) {
  launch(list_probing_kernel, Grid::over(queries, kThreads), stream, probes, queries, slots, list, found);
}

void launch_leave_out_probes(const uint64_t* probes, int64_t count, const uint8_t* marks, uint64_t* out,
                             cudaStream_t stream) {
  launch(leave_out_probes_kernel, Grid::over(count, kThreads), stream, probes, count, marks, out);
}

void launch_pack_found(const int64_t* ids, const float* keys, int64_t count, const uint32_t* rows, uint64_t* out,
                       cudaStream_t stream) {
  launch(pack_found_kernel, Grid::over(count, kThreads), stream, ids, keys, count, rows, out);
}

void launch_take_found(const uint64_t* from, const uint32_t* numbers, int64_t m, int64_t k, uint64_t* to,
                       cudaStream_t stream) {
  launch(move_found_kernel, Grid::over(m * k, kThreads), stream, from, numbers, m, k, to, true);
}

void launch_put_found(const uint64_t* from, const uint32_t* numbers, int64_t m, int64_t k, uint64_t* to,
                      cudaStream_t stream) {
  launch(move_found_kernel, Grid::over(m * k, kThreads), stream, from, numbers, m, k, to, false);
}

void launch_merge_found(const uint64_t* a, const uint64_t* b, int64_t queries, int64_t k, uint64_t* out,
                        cudaStream_t stream) {
  launch(merge_found_kernel, Grid::over(2 * queries * k, kThreads), stream, a, b, queries, k, out);
}

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
