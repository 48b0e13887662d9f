#include "graph/cells/cell_ranks_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/error.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>(divide_up(threads, kThreads)); }

__global__ void __launch_bounds__(kThreads) put_ranks_kernel(RanksTask task) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= task.count) return;
  const int64_t row = task.first + i;
  const int64_t* const found = task.found + i * task.stride;
  const uint32_t own = task.sets_own ? static_cast<uint32_t>(found[0]) : task.own[row];
  if (task.sets_own) task.own[row] = own;
  if (task.ranks == nullptr) return;
  uint32_t* const ranks = task.ranks + row * task.probes;
  int64_t at = 0;
  ranks[at++] = own;
  for (int64_t j = 0; j < task.stride && at < task.probes; ++j) {
    const auto cell = static_cast<uint32_t>(found[j]);
    if (cell != own) ranks[at++] = cell;
  }
}

// Calls use(row, cell) on every thread that has one.
template <typename Use>
__device__ void with_cell(const CellColumns& columns, const Use& use) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t width = columns.end - columns.first;
  if (at >= columns.rows * width) return;
  const int64_t row = at / width;
  use(row, columns.cells[row * columns.stride + columns.first + at % width]);
}

__global__ void __launch_bounds__(kThreads) count_kernel(CellColumns columns, uint32_t* counts) {
  with_cell(columns, [&](int64_t, uint32_t cell) { atomicAdd(counts + cell, 1u); });
}

__global__ void __launch_bounds__(kThreads)
    places_kernel(CellColumns columns, uint32_t* next, uint32_t* places, uint32_t* row_places) {
  with_cell(columns, [&](int64_t row, uint32_t cell) {
    const uint32_t place = atomicAdd(next + cell, 1u);
    places[place] = static_cast<uint32_t>(row);
    row_places[row] = place;
  });
}

__global__ void __launch_bounds__(kThreads)
    slots_kernel(CellColumns columns, const uint32_t* row_places, uint32_t* next, uint32_t* slots) {
  with_cell(columns, [&](int64_t row, uint32_t cell) { slots[atomicAdd(next + cell, 1u)] = row_places[row]; });
}

__global__ void __launch_bounds__(kThreads) near_ranks_kernel(NearRanksTask task) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= task.count) return;
  const uint32_t row = task.list[i];
  const uint32_t own = task.own[row];
  const uint32_t* const numbers = task.numbers + own * task.near;
  uint32_t* const ranks = task.ranks + row * task.probes;
  int64_t at = 0;
  ranks[at++] = own;
  for (int64_t j = 0; j < task.stride && at < task.probes; ++j) {
    const uint32_t cell = numbers[task.columns[i * task.stride + j]];
    if (cell != own) ranks[at++] = cell;
  }
}

// A block for each row, in shared memory.
__global__ void __launch_bounds__(kThreads) sort_kernel(const int64_t* ids, int64_t count, uint32_t* out) {
  __shared__ uint32_t numbers[kMostSorted];
  const int64_t* const mine = ids + blockIdx.x * count;
  for (int i = static_cast<int>(threadIdx.x); i < kMostSorted; i += kThreads) {
    numbers[i] = i < count ? static_cast<uint32_t>(mine[i]) : 0xFFFFFFFFu;
  }
  for (int size = 2; size <= kMostSorted; size *= 2) {
    for (int apart = size / 2; apart > 0; apart /= 2) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < kMostSorted / 2; i += kThreads) {
        const int low = 2 * i - i % apart;
        const uint32_t a = numbers[low];
        const uint32_t b = numbers[low + apart];
        if ((a > b) == ((low & size) == 0)) {
          numbers[low] = b;
          numbers[low + apart] = a;
        }
      }
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) out[blockIdx.x * count + i] = numbers[i];
}

}  // namespace

void launch_put_near_ranks(const NearRanksTask& task, cudaStream_t stream) {
  if (task.count == 0) return;
  near_ranks_kernel<<<blocks_for(task.count), kThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("near_ranks_kernel");
}

void launch_sort_numbers(const int64_t* ids, int64_t rows, int64_t count, uint32_t* out, cudaStream_t stream) {
  if (rows == 0) return;
  sort_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(ids, count, out);
  KITH_CUDA_CHECK_LAUNCH("sort_kernel");
}

void launch_put_ranks(const RanksTask& task, cudaStream_t stream) {
  if (task.count == 0) return;
  put_ranks_kernel<<<blocks_for(task.count), kThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("put_ranks_kernel");
}

void launch_count_cells(const CellColumns& columns, uint32_t* counts, cudaStream_t stream) {
  const int64_t threads = columns.rows * (columns.end - columns.first);
  if (threads == 0) return;
  count_kernel<<<blocks_for(threads), kThreads, 0, stream>>>(columns, counts);
  KITH_CUDA_CHECK_LAUNCH("count_kernel");
}

void launch_put_places(const CellColumns& columns, uint32_t* next, uint32_t* places, uint32_t* row_places,
                       cudaStream_t stream) {
  const int64_t threads = columns.rows * (columns.end - columns.first);
  if (threads == 0) return;
  places_kernel<<<blocks_for(threads), kThreads, 0, stream>>>(columns, next, places, row_places);
  KITH_CUDA_CHECK_LAUNCH("places_kernel");
}

void launch_put_slots(const CellColumns& columns, const uint32_t* row_places, uint32_t* next, uint32_t* slots,
                      cudaStream_t stream) {
  const int64_t threads = columns.rows * (columns.end - columns.first);
  if (threads == 0) return;
  slots_kernel<<<blocks_for(threads), kThreads, 0, stream>>>(columns, row_places, next, slots);
  KITH_CUDA_CHECK_LAUNCH("slots_kernel");
}

}  // namespace kith
