#include <kith/matrix_buffer.hpp>

#include <kith/error.hpp>

#include "core/byte_size.hpp"

#include <fmt/format.h>

namespace kith {

MatrixBuffer::MatrixBuffer(DType dtype, int64_t rows, int64_t cols, std::string_view purpose,
                           const Resources& resources)
    : rows_(rows), cols_(cols), dtype_(dtype) {
  const int64_t bytes =
      rows < 0 || cols < 0 ? INT64_MAX : saturating_multiply(saturating_multiply(rows, cols), size_of(dtype));
  if (bytes == INT64_MAX) {
    throw InvalidArgument(fmt::format("a matrix of {} x {} cannot be allocated", rows, cols));
  }
  buffer_ = HostBuffer(bytes, purpose, resources);
}

}  // namespace kith
