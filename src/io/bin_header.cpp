#include "io/bin_header.hpp"

#include <kith/error.hpp>

#include "io/file_error.hpp"

#include <fmt/format.h>

#include <cstring>

namespace kith {

FileLayout parse_bin_header(std::string_view head, ElementType element, const std::string& path) {
  const auto length = static_cast<int64_t>(head.size());
  if (length < kBinHeaderBytes) {
    throw_corrupt(path, length, fmt::format("the file ends inside its header, which has {} bytes", kBinHeaderBytes));
  }
  uint32_t shape[2];
  std::memcpy(shape, head.data(), sizeof(shape));
  const FileLayout layout{element, shape[0], shape[1], kBinHeaderBytes};
  check_shape(layout, path, 0);
  return layout;
}

std::string make_bin_header(int64_t rows, int64_t cols, const std::string& path) {
  if (rows > UINT32_MAX || cols > UINT32_MAX) {
    throw InvalidArgument(fmt::format("'{}' cannot hold {} x {}: this format counts up to {}; write an .npy instead",
                                      path, rows, cols, UINT32_MAX));
  }
  const uint32_t shape[2] = {static_cast<uint32_t>(rows), static_cast<uint32_t>(cols)};
  std::string header(sizeof(shape), '\0');
  std::memcpy(header.data(), shape, sizeof(shape));
  return header;
}

}  // namespace kith
