#include "graph/build/merge/joined_rows.hpp"

#include "cuda/device_memory.hpp"

#include <cstring>

namespace kith {

bool JoinedRows::lie_together(const MatrixView& a, const MatrixView& b) {
  if (b.rows() == 0) return true;
  return a.rows() > 0 && a.row(a.rows()) == b.row(0) && a.row_stride() == b.row_stride() && a.space() == b.space();
}

JoinedRows::JoinedRows(const MatrixView& a, const MatrixView& b, Device device, const Resources& resources) {
  const int64_t rows = a.rows() + b.rows();
  if (lie_together(a, b)) {
    view_ = MatrixView(a.data(), a.dtype(), {rows, a.cols(), a.row_stride()}, a.space());
    return;
  }
  const int64_t row_bytes = a.cols() * size_of(a.dtype());
  if (device.kind == DeviceKind::cuda) {
    device_memory_ = allocate_on_device(rows * row_bytes, "the rows of both sets", device.index, resources);
    copy_to_device(a, device_memory_.get(), device.index, resources);
    copy_to_device(b, device_memory_.get() + a.rows() * row_bytes, device.index, resources);
    view_ = MatrixView(device_memory_.get(), a.dtype(), {rows, a.cols(), a.cols()}, MemorySpace::cuda(device.index));
    return;
  }
  memory_ = MatrixBuffer(a.dtype(), rows, a.cols(), "the rows of both sets", resources);
  const MutableMatrixView out = memory_.mutable_view();
  const auto bytes = static_cast<size_t>(row_bytes);
  for (int64_t i = 0; i < a.rows(); ++i) std::memcpy(out.row(i), a.row(i), bytes);
  for (int64_t i = 0; i < b.rows(); ++i) std::memcpy(out.row(a.rows() + i), b.row(i), bytes);
  view_ = memory_.view();
}

}  // namespace kith
