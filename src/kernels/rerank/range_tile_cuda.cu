#include "kernels/rerank/range_tile_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "kernels/rerank/range_places_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

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

// What is written of a query's neighbour.
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

Grid grid_for_parts(int64_t queries) {
  return {{static_cast<unsigned>(queries), kRangeTileParts / kPartsEach}, kThreads};
}

}  // namespace

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
