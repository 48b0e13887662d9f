// Rows that are equal to many before them.
//
// Among rows with the same bits, or for cosine the same direction, only the k of the smallest numbers can be neighbours
// of a query: the others lose every tie. Rows are sorted by a hash, neighbours are compared, and a row with k equal
// ones right before it is left out. Rows that share a hash by chance come between equal ones and may save some of them:
// that costs time, not exactness.
#pragma once

#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

int64_t equal_rows_bytes(int64_t rows);

struct EqualRowsTask {
  DeviceRowsView rows;  // with inverse norms: equal are those whose values are once they are scaled to length 1
  int64_t cols = 0;
  int64_t k = 0;                // at least 1
  uint32_t* marks = nullptr;    // a set of marks (marked_rows_cuda.hpp): the rows that stay
  std::byte* memory = nullptr;  // equal_rows_bytes
};
// Enqueues and returns.
void launch_mark_unequal(const EqualRowsTask& task, cudaStream_t stream);

}  // namespace kith
