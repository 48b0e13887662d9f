// Rows of a block on a GPU: the places of rows stored cell by cell, and their probes as positions on the curve.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// Rows of a cell, which are contiguous.
struct CellRun {
  uint32_t first_row = 0;
  uint32_t first_place = 0;
  uint32_t rows = 0;
};
// place_rows, which hold kNoPlace before: the row at each place; row_places: the place of each row. Runs lie on the
// device. Enqueues and returns.
void launch_place_runs(const CellRun* runs, int64_t count, uint32_t* place_rows, uint32_t* row_places,
                       cudaStream_t stream);

// Converts stored cells, of 2 to 4 bytes each, to positions[cell]. Enqueues and returns.
void launch_probe_positions(const std::byte* stored, int64_t probe_bytes, int64_t count, const uint32_t* positions,
                            uint32_t* out, cudaStream_t stream);

// out[i] = i. Enqueues and returns.
void launch_count_up(uint32_t* out, int64_t count, cudaStream_t stream);

}  // namespace kith
