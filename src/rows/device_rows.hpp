// Views of vectors on a device, for all kernels that read them. No CUDA types, so that tests can run the cores of
// kernels on the CPU.
#pragma once

#include <kith/dtype.hpp>
#include <kith/view.hpp>

#include "core/host_device.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// Rows of a dtype known at run time.
struct DeviceRowsView {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t stride = 0;  // elements
  int64_t count = 0;
  const double* inverse_norms = nullptr;  // cosine alone; one for each of the `count`
  const uint32_t* list = nullptr;         // row i is row list[i] - first_listed of the data; null: row i
  uint32_t first_listed = 0;

  KITH_HOST_DEVICE int64_t stored(int64_t i) const {
    return list == nullptr ? i : static_cast<int64_t>(list[i] - first_listed);
  }
  // Row i; T must be the type of the dtype.
  template <typename T>
  KITH_HOST_DEVICE const T* row(int64_t i) const {
    return static_cast<const T*>(data) + stored(i) * stride;
  }
};

// The view of a matrix in device memory.
inline DeviceRowsView device_rows(const MatrixView& matrix) {
  return {matrix.data(), matrix.dtype(), matrix.row_stride(), matrix.rows(), nullptr};
}

// Rows first .. first + count - 1.
inline DeviceRowsView slice_rows(const DeviceRowsView& rows, int64_t first, int64_t count) {
  DeviceRowsView part = rows;
  if (rows.list != nullptr) {
    part.list = rows.list + first;
  } else {
    part.data = static_cast<const std::byte*>(rows.data) + first * rows.stride * size_of(rows.dtype);
  }
  part.count = count;
  if (rows.inverse_norms != nullptr) part.inverse_norms = rows.inverse_norms + first;
  return part;
}

}  // namespace kith
