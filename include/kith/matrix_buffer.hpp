// A matrix in memory that Kith owns: a HostBuffer with a shape and a dtype. Rows are contiguous.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/view.hpp>

namespace kith {

class KITH_EXPORT MatrixBuffer {
 public:
  MatrixBuffer() = default;
  MatrixBuffer(DType dtype, int64_t rows, int64_t cols, std::string_view purpose, const Resources& resources);

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  DType dtype() const { return dtype_; }
  MatrixView view() const { return {buffer_.data(), dtype_, {rows_, cols_, cols_}}; }
  MutableMatrixView mutable_view() { return {buffer_.data(), dtype_, {rows_, cols_, cols_}}; }

 private:
  HostBuffer buffer_;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
  DType dtype_ = DType::f32;
};

}  // namespace kith
