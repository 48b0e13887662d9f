// Converts packed neighbours on the device to ids and distances there, in the metric's unit.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>

#include "kernels/select/select_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// `out` has at least as many places for each query as the lists; those past them are padding. Enqueues and returns.
void launch_write_neighbors(Metric metric, const DeviceLists& lists, const NeighborsView& out, cudaStream_t stream);

// The same for queries that are rows first_row, first_row + 1, ... of the base: each is left out of its own neighbours,
// of which the lists hold one more than `out` has places, or all.
void launch_write_others(Metric metric, const DeviceLists& lists, int64_t first_row, const NeighborsView& out,
                         cudaStream_t stream);

// From what selection over rows of keys gives (select_rows_cuda.hpp) to lists of neighbours (core/ordered_key.hpp), or
// at once to results.
struct PackSelectedTask {
  const float* keys = nullptr;       // `count` places
  const int32_t* columns = nullptr;  // -1: padding
  int64_t count = 0;
  int64_t first_row = 0;              // row of column 0
  const uint32_t* numbers = nullptr;  // of the columns, where they are not first_row, first_row + 1, ...
  uint64_t* neighbors = nullptr;  // for launch_pack_selected
};

// Enqueue and return. Results have `k` places of each query selected, and padding behind them.
void launch_pack_selected(const PackSelectedTask& task, cudaStream_t stream);
void launch_write_selected(const PackSelectedTask& task, int64_t k, Metric metric, const NeighborsView& out,
                           cudaStream_t stream);

}  // namespace kith
