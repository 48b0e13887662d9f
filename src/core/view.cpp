#include <kith/view.hpp>

#include <kith/error.hpp>

#include "core/byte_size.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

void check_range(const MatrixView& view, int64_t first, int64_t count) {
  if (first < 0 || count < 0 || first > view.rows() - count) {
    throw InvalidArgument(
        fmt::format("{} rows from row {} were requested, but the matrix has {}", count, first, view.rows()));
  }
}

}  // namespace

MatrixView::MatrixView(const void* data, DType dtype, MatrixShape shape, MemorySpace space)
    : data_(data), shape_(shape), dtype_(dtype), space_(space) {
  const auto [rows, cols, stride] = shape;
  if (rows < 0 || cols < 0) throw InvalidArgument(fmt::format("a matrix cannot have the shape {} x {}", rows, cols));
  if (stride < cols) {
    throw InvalidArgument(
        fmt::format("the row stride of {} elements is less than the {} columns; rows must not overlap and "
                    "columns must be contiguous",
                    stride, cols));
  }
  int64_t bytes = 0;  // multiplied without a division, which takes as long as a short row's distance
  if (__builtin_mul_overflow(rows, stride, &bytes) || __builtin_mul_overflow(bytes, size_of(dtype), &bytes)) {
    throw InvalidArgument(
        fmt::format("a matrix of {} rows with a stride of {} is larger than any memory", rows, stride));
  }
  if (data == nullptr && !empty())
    throw InvalidArgument(fmt::format("a null pointer was given for a {} x {} matrix", rows, cols));
}

MatrixView MatrixView::slice(int64_t first, int64_t count) const {
  check_range(*this, first, count);
  return {row(first), dtype_, {count, cols(), row_stride()}, space_};
}

MutableMatrixView MutableMatrixView::slice(int64_t first, int64_t count) const {
  check_range(*this, first, count);
  return {row(first), dtype(), {count, cols(), row_stride()}, space()};
}

}  // namespace kith
