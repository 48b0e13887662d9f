// From what selection over rows of keys gives (select_rows_cuda.hpp) to lists of neighbours (core/ordered_key.hpp), or
// at once to results.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct PackSelectedTask {
  const float* keys = nullptr;       // of `count` places
  const int32_t* columns = nullptr;  // -1: padding
  int64_t count = 0;
  int64_t first_row = 0;              // of column 0
  const uint32_t* numbers = nullptr;  // of the columns, where they are not first_row, first_row + 1, ...
  uint64_t* neighbors = nullptr;  // for launch_pack_selected
};

// Enqueue and return. Results have `k` places of each query selected, and padding behind them.
void launch_pack_selected(const PackSelectedTask& task, cudaStream_t stream);
void launch_write_selected(const PackSelectedTask& task, int64_t k, Metric metric, const NeighborsView& out,
                           cudaStream_t stream);

}  // namespace kith
