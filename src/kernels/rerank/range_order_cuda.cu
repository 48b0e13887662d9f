#include "kernels/rerank/range_order_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "core/result_exit.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"

#include <cub/device/device_radix_sort.cuh>

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 132 * 16;

__global__ void __launch_bounds__(kThreads)
    extremes_kernel(const uint64_t* neighbors, int64_t count, uint32_t* extremes) {
  uint32_t least = 0xFFFFFFFFu;
  uint32_t most = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    least = min(least, ordered_of(neighbors[i]));
    most = max(most, ordered_of(neighbors[i]));
  }
  least = __reduce_min_sync(0xFFFFFFFFu, least);
  most = __reduce_max_sync(0xFFFFFFFFu, most);
  if (threadIdx.x % 32 != 0) return;
  atomicMin(&extremes[0], least);
  atomicMax(&extremes[1], most);
}

// One block per run, or per gridDim.y-th part of a long run.
template <typename Use>
__device__ void for_each_of_run(const PlacedRun& run, const Use& use) {
  for (int64_t i = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x; i < run.count;
       i += static_cast<int64_t>(gridDim.y) * kThreads) {
    use(run.to + i, run.neighbors[i]);
  }
}

__global__ void __launch_bounds__(kThreads) write_runs_kernel(const PlacedRun* runs, ResultExit exit, RangeOutput out) {
  for_each_of_run(runs[blockIdx.x], [&](int64_t place, uint64_t neighbor) {
    out.ids[place] = exit.id(neighbor);
    out.distances[place] = exit.distance(neighbor);
  });
}

__global__ void __launch_bounds__(kThreads)
    pack_runs_kernel(const PlacedRun* runs, uint32_t first_query, int64_t first, RangeWord word, uint64_t* words) {
  const PlacedRun run = runs[blockIdx.x];
  for_each_of_run(run, [&](int64_t place, uint64_t neighbor) {
    words[place - first] = word.pack(run.query - first_query, neighbor);
  });
}

__global__ void __launch_bounds__(kThreads)
    write_words_kernel(const uint64_t* words, int64_t count, RangeWord word, ResultExit exit, RangeOutput out) {
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    const uint64_t neighbor = word.neighbor(words[i]);
    out.ids[i] = exit.id(neighbor);
    out.distances[i] = exit.distance(neighbor);
  }
}

Grid grid_for(int64_t threads) {
  return Grid::of(std::min(divide_up(threads, int64_t{kThreads}), kMostBlocks), kThreads);
}

// The case of few, long runs.
Grid grid_for_runs(int64_t runs) {
  const int64_t blocks_each = std::clamp<int64_t>(kMostBlocks / std::max<int64_t>(runs, 1), 1, 64);
  return Grid::of(runs, blocks_each, kThreads);
}

__global__ void __launch_bounds__(kThreads) range_tile_kernel(RangeTileTask task) {
  __shared__ uint32_t count;
  __shared__ RangePlaces places;
  const int64_t query = blockIdx.x;
  if (task.target.counts[query] != kNotDelivered) return;
  const uint32_t* const keys = task.keys + query * task.stride;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  uint32_t mine = 0;
  for (int64_t i = threadIdx.x; i < task.rows; i += kThreads) mine += keys[i] <= task.limit ? 1 : 0;
  if (mine > 0) atomicAdd(&count, mine);
  __syncthreads();
  if (!take_places(task.target, query, count, places)) return;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < task.rows; i += kThreads) {
    if (keys[i] > task.limit) continue;
    const uint32_t number = task.numbers == nullptr ? task.first_row + static_cast<uint32_t>(i) : task.numbers[i];
    task.target.hits[places.start + atomicAdd(&count, 1u)] = pack_neighbor(keys[i], number);
  }
}

// The rows of one part of a query: whole warps of them.
struct TilePart {
  int64_t first;
  int64_t end;
};
__device__ TilePart tile_part(int64_t rows, int part) {
  const int64_t each = (rows + kRangeTileParts * 32 - 1) / (kRangeTileParts * 32) * 32;
  const int64_t first = part * each;
  return {first < rows ? first : rows, first + each < rows ? first + each : rows};
}

// A warp for each part of a query's rows: block (q, i) has some of the parts of query q.
constexpr int kPartsEach = kThreads / 32;
static_assert(kRangeTileParts % kPartsEach == 0);
__global__ void __launch_bounds__(kThreads)
    count_tile_kernel(RangeTileTask task, uint32_t* counts, uint32_t* extremes) {
  const int64_t query = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int part = static_cast<int>(blockIdx.y) * kPartsEach + static_cast<int>(threadIdx.x) / 32;
  const uint32_t* const keys = task.keys + query * task.stride;
  const TilePart mine = tile_part(task.rows, part);
  uint32_t count = 0;
  uint32_t least = 0xFFFFFFFFu;
  uint32_t most = 0;
#pragma unroll 8
  for (int64_t i = mine.first + lane; i < mine.end; i += 32) {
    const uint32_t key = keys[i];
    if (key > task.limit) continue;
    ++count;
    least = min(least, key);
    most = max(most, key);
  }
  count = __reduce_add_sync(0xFFFFFFFFu, count);
  least = __reduce_min_sync(0xFFFFFFFFu, least);
  most = __reduce_max_sync(0xFFFFFFFFu, most);
  if (lane != 0) return;
  counts[part * task.queries + query] = count;
  if (count == 0) return;
  atomicMin(&extremes[0], least);
  atomicMax(&extremes[1], most);
}

// Writers for a query's neighbours.
struct AsNeighbor {
  __device__ uint64_t operator()(int64_t, uint64_t neighbor) const { return neighbor; }
};
struct AsWord {
  RangeWord word;
  __device__ uint64_t operator()(int64_t query, uint64_t neighbor) const {
    return word.pack(static_cast<uint64_t>(query), neighbor);
  }
};

template <typename Form>
__global__ void __launch_bounds__(kThreads)
    write_tile_kernel(RangeTileTask task, const uint32_t* counts, const int64_t* starts, Form form, uint64_t* out) {
  const int64_t query = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int part = static_cast<int>(blockIdx.y) * kPartsEach + static_cast<int>(threadIdx.x) / 32;
  const uint32_t* const keys = task.keys + query * task.stride;
  const TilePart mine = tile_part(task.rows, part);
  int64_t place = starts[query];
  for (int before = 0; before < part; ++before) place += counts[before * task.queries + query];
  constexpr int kAhead = 8;  // keys of a lane that are read before they are looked at: warps are few where queries are
  for (int64_t first = mine.first + lane; first - lane < mine.end; first += 32 * kAhead) {
    uint32_t ahead[kAhead];
    KITH_UNROLL
    for (int a = 0; a < kAhead; ++a) ahead[a] = first + 32 * a < mine.end ? keys[first + 32 * a] : 0xFFFFFFFFu;
    KITH_UNROLL
    for (int a = 0; a < kAhead; ++a) {
      const int64_t i = first + 32 * a;
      const bool found = i < mine.end && ahead[a] <= task.limit;
      const unsigned lanes = __ballot_sync(0xFFFFFFFFu, found);
      if (found) {
        const uint32_t number = task.numbers == nullptr ? task.first_row + static_cast<uint32_t>(i) : task.numbers[i];
        out[place + __popc(lanes & ((1u << lane) - 1))] = form(query, pack_neighbor(ahead[a], number));
      }
      place += __popc(lanes);
    }
  }
}

Grid grid_for_parts(int64_t queries) { return Grid::of(queries, kRangeTileParts / kPartsEach, kThreads); }

}  // namespace

void launch_key_extremes(const uint64_t* neighbors, int64_t count, uint32_t* extremes, cudaStream_t stream) {
  launch(extremes_kernel, grid_for(count), stream, neighbors, count, extremes);
}

void launch_write_runs(const PlacedRun* runs, int64_t count, const RangeOutput& out, cudaStream_t stream) {
  launch(write_runs_kernel, grid_for_runs(count), stream, runs, ResultExit(out.metric), out);
}

void launch_pack_runs(const PlacedRun* runs, int64_t count, uint32_t first_query, int64_t first, const RangeWord& word,
                      uint64_t* words, cudaStream_t stream) {
  launch(pack_runs_kernel, grid_for_runs(count), stream, runs, first_query, first, word, words);
}

void launch_write_words(const uint64_t* words, int64_t count, const RangeWord& word, const RangeOutput& out,
                        cudaStream_t stream) {
  launch(write_words_kernel, grid_for(count), stream, words, count, word, ResultExit(out.metric), out);
}

int64_t sort_words_bytes(int64_t count) {
  cub::DoubleBuffer<uint64_t> words;
  size_t bytes = 0;
  KITH_CUDA_CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, words, count, 0, 64, nullptr));
  return static_cast<int64_t>(bytes);
}

int sort_words(uint64_t* const (&words)[2], int64_t count, int first_bit, int end_bit, void* memory, int64_t bytes,
               cudaStream_t stream) {
  if (count == 0 || first_bit >= end_bit) return 0;
  cub::DoubleBuffer<uint64_t> both(words[0], words[1]);
  auto room = static_cast<size_t>(bytes);
  KITH_CUDA_CHECK(cub::DeviceRadixSort::SortKeys(memory, room, both, count, first_bit, end_bit, stream));
  return both.selector;
}

void launch_count_tile(const RangeTileTask& task, uint32_t* counts, uint32_t* extremes, cudaStream_t stream) {
  launch(count_tile_kernel, grid_for_parts(task.queries), stream, task, counts, extremes);
}

void launch_write_tile(const RangeTileTask& task, const uint32_t* counts, const int64_t* starts, uint64_t* neighbors,
                       cudaStream_t stream) {
  launch(write_tile_kernel<AsNeighbor>, grid_for_parts(task.queries), stream, task, counts, starts, AsNeighbor(),
         neighbors);
}

void launch_write_tile_words(const RangeTileTask& task, const uint32_t* counts, const int64_t* starts,
                             const RangeWord& word, uint64_t* words, cudaStream_t stream) {
  launch(write_tile_kernel<AsWord>, grid_for_parts(task.queries), stream, task, counts, starts, AsWord{word}, words);
}

void launch_range_tile(const RangeTileTask& task, cudaStream_t stream) {
  launch(range_tile_kernel, Grid::of(task.queries, kThreads), stream, task);
}

}  // namespace kith
