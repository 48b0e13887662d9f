// From what selection over rows of keys gives (select_rows_cuda.hpp) to lists of neighbours (core/ordered_key.hpp).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct PackSelectedTask {
  const float* keys = nullptr;       // of `count` places
  const int32_t* columns = nullptr;  // -1: padding
  int64_t count = 0;
  int64_t first_row = 0;              // of column 0
  const uint32_t* numbers = nullptr;  // of the columns, where they are not first_row, first_row + 1, ...
  uint64_t* neighbors = nullptr;
};

// Enqueues and returns.
void launch_pack_selected(const PackSelectedTask& task, cudaStream_t stream);

}  // namespace kith
