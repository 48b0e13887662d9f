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
  const int64_t row = task.list == nullptr ? task.first + i : task.list[i];
  const int64_t* const found = task.found + i * task.stride;
  const uint32_t own = task.sets_own ? static_cast<uint32_t>(found[0]) : task.own[row];
  if (task.sets_own) task.own[row] = own;
  if (task.ranks == nullptr) return;
  uint32_t* const ranks = task.ranks + row * task.probes;
  int64_t at = 0;
  ranks[at++] = own;
  for (int64_t j = 0; j < task.stride && at < task.probes; ++j) {
    const auto cell = task.numbers == nullptr ? static_cast<uint32_t>(found[j]) : task.numbers[found[j]];
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

__global__ void __launch_bounds__(kThreads)
    gather_centres_kernel(const float* centres, int64_t cols, const uint32_t* list, int64_t count, float* out) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at < count * cols) out[at] = centres[list[at / cols] * cols + at % cols];
}

}  // namespace

void launch_gather_centres(const MatrixView& centres, const uint32_t* list, int64_t count, float* out,
                           cudaStream_t stream) {
  gather_centres_kernel<<<blocks_for(count * centres.cols()), kThreads, 0, stream>>>(
      static_cast<const float*>(centres.data()), centres.cols(), list, count, out);
  KITH_CUDA_CHECK_LAUNCH("gather_centres_kernel");
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
