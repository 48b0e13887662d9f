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

}  // namespace kith
