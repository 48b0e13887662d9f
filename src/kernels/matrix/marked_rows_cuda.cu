#include "kernels/matrix/marked_rows_cuda.hpp"

#include "cuda/launch.hpp"
#include "cuda/warp.hpp"

namespace kith {
namespace {

constexpr int kWarps = kMarkedThreads / 32;

// A bit for each of rows 32 i .. 32 i + 31, from the four words of their tile.
__device__ uint32_t ascending_marks(const uint32_t* marks, int64_t rows, int64_t i) {
  constexpr int kQuarters = kOperandTile / 32;
  const int64_t tile = i / kQuarters;
  if (tile >= operand_tiles(rows)) return 0;
  const auto first_eight = static_cast<int>(i % kQuarters) * 4;
  uint32_t mask = 0;
  KITH_UNROLL
  for (int part = 0; part < kMarkWordsPerTile; ++part) {
    const uint32_t word = marks[mark_word(tile, part)];
    KITH_UNROLL
    for (int j = 0; j < 4; ++j) mask |= (word >> (2 * (first_eight + j)) & 3u) << (8 * j + 2 * part);
  }
  const int64_t left = rows - 32 * i;  // behind the last row nothing counts
  return left >= 32 ? mask : left > 0 ? mask & ((1u << left) - 1) : 0;
}

// How many the threads before this one have, and what all of them have.
__device__ uint2 count_before(uint32_t mine) {
  __shared__ uint32_t warps[kWarps];
  const uint32_t up_to = warp_inclusive(mine);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (lane_index() == 31) warps[warp] = up_to;
  __syncthreads();
  uint32_t before = 0;
  uint32_t all = 0;
  KITH_UNROLL
  for (int i = 0; i < kWarps; ++i) {
    if (i < warp) before += warps[i];
    all += warps[i];
  }
  return {before + up_to - mine, all};
}

__global__ void __launch_bounds__(kMarkedThreads) count_marked_kernel(CountMarkedTask task) {
  const uint32_t* const marks = task.marks + static_cast<int64_t>(blockIdx.y) * mark_words(task.rows);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kMarkedThreads + threadIdx.x;
  const uint2 count = count_before(static_cast<uint32_t>(__popc(ascending_marks(marks, task.rows, i))));
  if (threadIdx.x != 0) return;
  task.parts[static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x] = count.y;
  if (count.y > 0) atomicAdd(&task.totals[blockIdx.y], count.y);
}

__global__ void __launch_bounds__(kMarkedThreads) list_marked_kernel(ListMarkedTask task) {
  __shared__ uint32_t start;
  if (threadIdx.x == 0) start = 0;
  __syncthreads();
  uint32_t before = 0;
  for (unsigned part = threadIdx.x; part < blockIdx.x; part += kMarkedThreads) before += task.parts[part];
  before = warp_sum(before);
  if (lane_index() == 0 && before > 0) atomicAdd(&start, before);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kMarkedThreads + threadIdx.x;
  uint32_t mask = ascending_marks(task.marks, task.rows, i);
  const uint2 count = count_before(static_cast<uint32_t>(__popc(mask)));  // waits for all threads
  uint32_t place = count.x + start;
  for (; mask != 0; mask &= mask - 1) {
    const int64_t row = 32 * i + __ffs(static_cast<int>(mask)) - 1;
    task.list[place++] = task.numbers == nullptr ? task.first_number + static_cast<uint32_t>(row) : task.numbers[row];
  }
}

}  // namespace

void launch_count_marked(const CountMarkedTask& task, cudaStream_t stream) {
  launch(count_marked_kernel, Grid::of(marked_parts(task.rows), task.sets, kMarkedThreads), stream, task);
}

void launch_list_marked(const ListMarkedTask& task, cudaStream_t stream) {
  launch(list_marked_kernel, Grid::of(marked_parts(task.rows), kMarkedThreads), stream, task);
}

}  // namespace kith
