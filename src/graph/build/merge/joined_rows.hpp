// Both sets of rows that are merged, one after the other: as they lie where the second follows the first, else a copy on
// the device that works.
#pragma once

#include <kith/device.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstddef>
#include <memory>

namespace kith {

class JoinedRows {
 public:
  // The device is not automatic. Rows that the CPU works on lie in host memory, others anywhere.
  JoinedRows(const MatrixView& a, const MatrixView& b, Device device, const Resources& resources);
  // Whether no copy is needed.
  static bool lie_together(const MatrixView& a, const MatrixView& b);

  const MatrixView& view() const { return view_; }

 private:
  MatrixBuffer memory_;
  std::shared_ptr<std::byte> device_memory_;
  MatrixView view_;
};

}  // namespace kith
