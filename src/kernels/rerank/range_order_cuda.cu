#include "kernels/rerank/range_order_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/result_exit.hpp"
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

// A block for each run, or for every gridDim.y-th part of a long one.
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

// Few runs are long.
Grid grid_for_runs(int64_t runs) {
  const int64_t blocks_each = std::clamp<int64_t>(kMostBlocks / std::max<int64_t>(runs, 1), 1, 64);
  return {{static_cast<unsigned>(runs), static_cast<unsigned>(blocks_each)}, kThreads};
}

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

}  // namespace kith
