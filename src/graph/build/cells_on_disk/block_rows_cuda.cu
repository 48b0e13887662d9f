#include "graph/build/cells_on_disk/block_rows_cuda.hpp"

#include "cuda/launch.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

// A block for each run.
__global__ void __launch_bounds__(kThreads)
    place_runs_kernel(const CellRun* runs, uint32_t* place_rows, uint32_t* row_places) {
  const CellRun run = runs[blockIdx.x];
  for (uint32_t i = threadIdx.x; i < run.rows; i += kThreads) {
    place_rows[run.first_place + i] = run.first_row + i;
    row_places[run.first_row + i] = run.first_place + i;
  }
}

template <int kBytes>
__global__ void __launch_bounds__(kThreads)
    positions_kernel(const uint8_t* stored, int64_t count, const uint32_t* positions, uint32_t* out) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= count) return;
  uint32_t cell = 0;
#pragma unroll
  for (int byte = 0; byte < kBytes; ++byte) cell |= uint32_t{stored[at * kBytes + byte]} << 8 * byte;
  out[at] = positions[cell];
}

__global__ void __launch_bounds__(kThreads) count_up_kernel(uint32_t* out, int64_t count) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at < count) out[at] = static_cast<uint32_t>(at);
}

}  // namespace

void launch_count_up(uint32_t* out, int64_t count, cudaStream_t stream) {
  launch(count_up_kernel, Grid::over(count, kThreads), stream, out, count);
}

void launch_place_runs(const CellRun* runs, int64_t count, uint32_t* place_rows, uint32_t* row_places,
                       cudaStream_t stream) {
  launch(place_runs_kernel, Grid::of(count, kThreads), stream, runs, place_rows, row_places);
}

void launch_probe_positions(const std::byte* stored, int64_t probe_bytes, int64_t count, const uint32_t* positions,
                            uint32_t* out, cudaStream_t stream) {
  const Grid grid = Grid::over(count, kThreads);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(stored);
  if (probe_bytes == 2) {
    launch(positions_kernel<2>, grid, stream, bytes, count, positions, out);
  } else if (probe_bytes == 3) {
    launch(positions_kernel<3>, grid, stream, bytes, count, positions, out);
  } else {
    launch(positions_kernel<4>, grid, stream, bytes, count, positions, out);
  }
}

}  // namespace kith
