// A buffer of f32 rows in host memory, or in the memory of the GPU that has other rows.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "cuda/device_memory.hpp"

#include <memory>
#include <string_view>
#include <utility>

namespace kith {

class FloatRows {
 public:
  FloatRows() = default;
  FloatRows(MemorySpace space, int64_t rows, int64_t cols, std::string_view purpose, const Resources& resources) {
    if (space.host_readable()) {
      here_ = MatrixBuffer(DType::f32, rows, cols, purpose, resources);
      view_ = here_.mutable_view();
    } else {
      there_ = allocate_on_device(array_bytes<float>(rows * cols), purpose, space.device, resources);
      view_ = {there_.get(), DType::f32, {rows, cols, cols}, space};
    }
  }

  const MutableMatrixView& view() const { return view_; }
  // Only of rows on the host.
  MatrixBuffer on_host() && { return std::move(here_); }

 private:
  MatrixBuffer here_;
  std::shared_ptr<std::byte> there_;
  MutableMatrixView view_;
};

}  // namespace kith
