// Where the rows that a quantizer makes go: an array in a GPU's memory, or a fresh one in Kith's host memory, counted
// against its limit.
#pragma once

#include "array.hpp"

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace kith::python {

class RowsOutput {
  template <typename T>
  static constexpr DType kType = std::is_same_v<T, float> ? DType::f32 : DType::u8;

 public:
  // `given` must be rows x cols values of `T`, float or uint8_t; InvalidArgument else. `what` is for errors: "the codes".
  template <typename T>
  static RowsOutput of(int64_t rows, int64_t cols, const char* what, const std::optional<DeviceArray>& given,
                       const Resources& resources) {
    RowsOutput output;
    if (given) {
      output.view_ = {given->writable<T>(what, rows, cols), kType<T>, {rows, cols, cols}, given->space()};
    } else {
      output.fresh_ = MatrixBuffer(kType<T>, rows, cols, what, resources);
      output.view_ = output.fresh_->mutable_view();
    }
    return output;
  }

  const MutableMatrixView& view() const { return view_; }

  // A fresh numpy array; none where the caller gave one. Call once, with the GIL.
  std::optional<nb::object> take() {
    if (!fresh_) return std::nullopt;
    return vectors_array(std::move(*fresh_));
  }

 private:
  RowsOutput() = default;

  std::optional<MatrixBuffer> fresh_;
  MutableMatrixView view_;
};

}  // namespace kith::python
