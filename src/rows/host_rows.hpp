// Rows that the host can read: rows in a GPU's
// memory are copied, others are used in place.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/within_limits.hpp"
#include "cuda/device_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kith {

class HostRows {
 public:
  HostRows(const MatrixView& rows, const Resources& resources, std::string_view purpose = "a copy of the queries")
      : view_(rows) {
    if (rows.space().host_readable()) return;
    const int device = rows.space().device;
    copy_ = MatrixBuffer(rows.dtype(), rows.rows(), rows.cols(), purpose, resources);
    const MutableMatrixView to = copy_.mutable_view();
    view_ = to;
    if (counts_only(resources)) return;
    const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
    wait_for_stream(device, resources);
    if (rows.row_stride() == rows.cols()) {
      copy_to_host(rows.data(), rows.rows() * row_bytes, device, to.data());
    } else {
      for (int64_t i = 0; i < rows.rows(); ++i) copy_to_host(rows.row(i), row_bytes, device, to.row(i));
    }
  }

  const MatrixView& view() const { return view_; }

 private:
  MatrixBuffer copy_;
  MatrixView view_;
};

}  // namespace kith
