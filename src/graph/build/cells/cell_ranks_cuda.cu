#include "graph/build/cells/cell_ranks_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/build/cells/cell_items.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kCountThreads = 512;
constexpr int64_t kMostBlockCounters = 16384;

// A warp for each row; lane j has the cells found at places j, j + 32, ... The own cell comes first, and those behind
// it close up. Probes from `skipped` on are put.
template <typename CellAt>
__device__ void put_ranks(uint32_t own, int64_t count, const CellAt& cell_at, uint32_t* ranks, int64_t skipped,
                          int64_t probes) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0 && skipped == 0) ranks[0] = own;
  int64_t passed = 0;  // own cells among the places before
  for (int64_t first = 0; first < count; first += 32) {
    const uint32_t cell = first + lane < count ? cell_at(first + lane) : own;
    const unsigned owns = __ballot_sync(0xFFFFFFFFu, cell == own);
    const int64_t place = 1 + first + lane - passed - __popc(owns & ((1u << lane) - 1)) - skipped;
    if (cell != own && place >= 0 && place < probes) ranks[place] = cell;
    passed += __popc(owns);
  }
}

__global__ void __launch_bounds__(kThreads) put_ranks_kernel(RanksTask task) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (i >= task.count) return;
  const int64_t row = task.first + i;
  const int64_t* const found = task.found + i * task.stride;
  const uint32_t own = task.sets_own ? static_cast<uint32_t>(found[0]) : task.own[row];
  if (task.sets_own && threadIdx.x % 32 == 0) task.own[row] = own;
  if (task.ranks == nullptr) return;
  put_ranks(
      own, task.stride, [&](int64_t j) { return static_cast<uint32_t>(found[j]); }, task.ranks + row * task.probes,
      task.first_probe, task.probes);
}

// Calls use(number of the row, cell) for every row and column of the block's part.
template <typename Use>
__device__ void for_cells(const CellColumns& columns, int64_t part, const Use& use) {
  const int64_t width = columns.end - columns.first;
  const int64_t all = columns.rows * width;
  const int64_t end = (blockIdx.x + 1) * part < all ? (blockIdx.x + 1) * part : all;
  for (int64_t at = blockIdx.x * part + threadIdx.x; at < end; at += blockDim.x) {
    const int64_t row = at / width;
    use(columns.first_row + row, columns.cells[row * columns.stride + columns.first + at % width]);
  }
}

// Where counters fit shared memory a block counts there first, and takes what it needs of each cell at once: many rows
// name the same cell, and counters in device memory would make them wait for each other.
__device__ void zero_counters(uint32_t* counters, int64_t cells) {
  for (int64_t cell = threadIdx.x; cell < cells; cell += blockDim.x) counters[cell] = 0;
  __syncthreads();
}

__global__ void __launch_bounds__(kCountThreads)
    count_kernel(CellColumns columns, int64_t part, int64_t cells, bool fits, uint32_t* counts) {
  extern __shared__ uint32_t shared[];
  if (fits) zero_counters(shared, cells);
  for_cells(columns, part, [&](int64_t, uint32_t cell) { atomicAdd((fits ? shared : counts) + cell, 1u); });
  if (!fits) return;
  __syncthreads();
  for (int64_t cell = threadIdx.x; cell < cells; cell += blockDim.x) {
    if (shared[cell] > 0) atomicAdd(counts + cell, shared[cell]);
  }
}

// Calls put(row, place) with the next free place of each cell that a row names.
template <typename Put>
__device__ void put_next(const CellColumns& columns, int64_t part, int64_t cells, bool fits, uint32_t* next,
                         const Put& put) {
  extern __shared__ uint32_t shared[];
  if (fits) {
    zero_counters(shared, cells);
    for_cells(columns, part, [&](int64_t, uint32_t cell) { atomicAdd(shared + cell, 1u); });
    __syncthreads();
    for (int64_t cell = threadIdx.x; cell < cells; cell += blockDim.x) {
      if (shared[cell] > 0) shared[cell] = atomicAdd(next + cell, shared[cell]);
    }
    __syncthreads();
  }
  for_cells(columns, part,
            [&](int64_t row, uint32_t cell) { put(row, atomicAdd((fits ? shared : next) + cell, 1u)); });
}

__global__ void __launch_bounds__(kCountThreads)
    places_kernel(CellColumns columns, int64_t part, int64_t cells, bool fits, uint32_t* next, uint32_t* places,
                  uint32_t* row_places) {
  put_next(columns, part, cells, fits, next, [&](int64_t row, uint32_t place) {
    places[place] = static_cast<uint32_t>(row);
    if (row_places != nullptr) row_places[row] = place;
  });
}

__global__ void __launch_bounds__(kCountThreads)
    slots_kernel(CellColumns columns, int64_t part, int64_t cells, bool fits, const uint32_t* row_places,
                 uint32_t* next, uint32_t* slots) {
  put_next(columns, part, cells, fits, next, [&](int64_t row, uint32_t slot) {
    if (slot < kNoSlots) slots[slot] = row_places[row];
  });
}

__global__ void __launch_bounds__(kThreads) near_ranks_kernel(NearRanksTask task) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (i >= task.count) return;
  const int64_t row = task.list == nullptr ? i : task.list[i];
  const uint32_t own = task.own[row];
  const uint32_t* const numbers = task.numbers + (task.tables == nullptr ? own : task.tables[row]) * task.near;
  const int32_t* const columns = task.columns + i * task.stride;
  put_ranks(
      own, task.stride, [&](int64_t j) { return numbers[columns[j]]; },
      task.ranks + (row - task.first_row) * task.probes, task.first_probe, task.probes);
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

// How counting is cut: blocks with a part each, large enough that a block's counters are worth their while.
struct CountParts {
  bool fits;
  int64_t part;
  Grid grid;

  CountParts(const CellColumns& columns, int64_t cells)
      : fits(cells <= kMostBlockCounters),
        part(std::max<int64_t>(fits ? 4 * cells : 0, 16 * kCountThreads)),
        grid(Grid::of(divide_up(columns.rows * (columns.end - columns.first), part), kCountThreads)
                 .with_shared(fits ? cells * static_cast<int64_t>(sizeof(uint32_t)) : 0)) {}
};

// A warp for each question.
__global__ void __launch_bounds__(kThreads) places_of_cells_kernel(PlacesTask task) {
  const int64_t number = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (number >= task.count) return;
  const PlaceQuestion question = task.questions[number];
  const uint32_t row = question.row - task.first_row;
  const uint32_t own = task.own[row];
  const uint32_t* const keys = task.keys + row * task.cells;
  const uint64_t asked = pack_neighbor(keys[question.cell], question.cell);
  uint32_t before = 0;
  for (int64_t cell = threadIdx.x % 32; cell < task.cells; cell += 32) {
    const auto other = static_cast<uint32_t>(cell);
    before += other != own && pack_neighbor(keys[cell], other) < asked ? 1 : 0;
  }
  before = __reduce_add_sync(0xFFFFFFFFu, before);
  if (threadIdx.x % 32 == 0) task.places[number] = question.cell == own ? 0 : before + 1;
}

}  // namespace

void launch_put_near_ranks(const NearRanksTask& task, cudaStream_t stream) {
  launch(near_ranks_kernel, Grid::of(divide_up(task.count, kWarps), kThreads), stream, task);
}

void launch_sort_numbers(const int64_t* ids, int64_t rows, int64_t count, uint32_t* out, cudaStream_t stream) {
  launch(sort_kernel, Grid::of(rows, kThreads), stream, ids, count, out);
}

void launch_put_ranks(const RanksTask& task, cudaStream_t stream) {
  launch(put_ranks_kernel, Grid::of(divide_up(task.count, kWarps), kThreads), stream, task);
}

void launch_count_cells(const CellColumns& columns, int64_t cells, uint32_t* counts, cudaStream_t stream) {
  const CountParts parts(columns, cells);
  allow_all_shared_memory(count_kernel);
  launch(count_kernel, parts.grid, stream, columns, parts.part, cells, parts.fits, counts);
}

void launch_put_places(const CellColumns& columns, int64_t cells, uint32_t* next, uint32_t* places,
                       uint32_t* row_places, cudaStream_t stream) {
  const CountParts parts(columns, cells);
  allow_all_shared_memory(places_kernel);
  launch(places_kernel, parts.grid, stream, columns, parts.part, cells, parts.fits, next, places, row_places);
}

void launch_put_slots(const CellColumns& columns, int64_t cells, const uint32_t* row_places, uint32_t* next,
                      uint32_t* slots, cudaStream_t stream) {
  const CountParts parts(columns, cells);
  allow_all_shared_memory(slots_kernel);
  launch(slots_kernel, parts.grid, stream, columns, parts.part, cells, parts.fits, row_places, next, slots);
}

void launch_find_places(const PlacesTask& task, cudaStream_t stream) {
  launch(places_of_cells_kernel, Grid::of(divide_up(task.count, kWarps), kThreads), stream, task);
}

}  // namespace kith
