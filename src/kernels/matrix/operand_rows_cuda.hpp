// What the kernels that make operands have in common: the rows they read, and maxima over all blocks.
#pragma once

#include "cuda/device_core.hpp"
#include "kernels/matrix/operands_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kOperandWarps = 8;
inline constexpr int kOperandThreads = 32 * kOperandWarps;
inline constexpr int kOperandMostBlocks = 132 * 16;  // each takes rows until none are left
inline constexpr unsigned kWholeWarp = 0xFFFFFFFFu;

template <typename T>
struct OperandRows {
  const T* data;
  int64_t stride;
  int64_t count;
  int64_t cols;
  const double* inverse_norms;
  const uint32_t* list;  // of row numbers, as in DeviceRowsView
  uint32_t first_listed;

  __device__ const T* row(int64_t i) const {
    return data + (list == nullptr ? i : static_cast<int64_t>(list[i] - first_listed)) * stride;
  }
};

template <typename T>
OperandRows<T> operand_rows(const OperandTask& task) {
  const DeviceRowsView& rows = task.rows;
  return {static_cast<const T*>(rows.data),
          rows.stride,
          rows.count,
          task.cols,
          rows.inverse_norms,
          rows.list,
          rows.first_listed};
}

// `value` is not negative.
__device__ inline void raise(float* place, float value) {
  atomicMax(reinterpret_cast<int*>(place), __float_as_int(value));
}

}  // namespace kith
