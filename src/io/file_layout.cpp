#include "io/file_layout.hpp"

#include "io/file_error.hpp"

#include <fmt/format.h>

namespace kith {

std::string describe(const FileLayout& layout) {
  return fmt::format("{} x {} {}", layout.rows, layout.cols, traits_of(layout.element).name);
}

void check_shape(const FileLayout& layout, const std::string& path, int64_t offset) {
  if (layout.overflows()) {
    throw_corrupt(path, offset,
                  fmt::format("the header promises {}, more bytes than a file can have", describe(layout)));
  }
  if (layout.rows > 0 && layout.cols == 0) {
    throw_corrupt(path, offset,
                  fmt::format("the header promises {} rows of 0 columns; rows need at least one", layout.rows));
  }
}

void check_size(const FileLayout& layout, int64_t size, const std::string& path) {
  const int64_t expected = layout.file_bytes();
  if (size < expected) {
    throw_corrupt(path, size,
                  fmt::format("the file ends here, but {} after a header of {} bytes need {} bytes; it is truncated "
                              "or its header is wrong",
                              describe(layout), layout.data_offset, expected));
  }
  if (size > expected) {
    throw_corrupt(path, expected,
                  fmt::format("{} bytes follow after {}; the file should have {} bytes, or its header is wrong",
                              size - expected, describe(layout), expected));
  }
}

}  // namespace kith
