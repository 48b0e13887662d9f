#include "io/matrix_file.hpp"

#include <kith/error.hpp>

#include "io/bin_header.hpp"
#include "io/file_error.hpp"
#include "io/file_format.hpp"
#include "io/npy_header.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

FileLayout read_header(const OpenedFile& opened, FileFormat format, const std::string& path) {
  std::string head(
      static_cast<size_t>(std::min(opened.size, format == FileFormat::npy ? kNpyHeadLimit : kBinHeaderBytes)), '\0');
  read_fully(opened.file, path, 0, head.data(), static_cast<int64_t>(head.size()));
  return format == FileFormat::npy ? parse_npy_header(head, path)
                                   : parse_bin_header(head, element_of(format).value(), path);
}

void check_size(const FileLayout& layout, int64_t size, const std::string& path) {
  const int64_t expected = layout.file_bytes();
  if (size < expected) {
    throw_corrupt(path, size,
                  fmt::format("the file ends here, but {} behind a header of {} bytes make {} bytes; it was cut short, "
                              "or its header is wrong",
                              describe(layout), layout.data_offset, expected));
  }
  if (size > expected) {
    throw_corrupt(path, expected,
                  fmt::format("{} bytes follow where {} end; the file should have {} bytes, or its header is wrong",
                              size - expected, describe(layout), expected));
  }
}

}  // namespace

MatrixFile::MatrixFile(const std::string& path) : path_(path) {
  const FileFormat format = format_of(path);
  OpenedFile opened = open_for_reading(path);
  layout_ = read_header(opened, format, path);
  check_size(layout_, opened.size, path);
  file_ = std::move(opened.file);
}

void MatrixFile::check_rows(int64_t first, int64_t count) const {
  if (first < 0 || count < 0 || first > layout_.rows - count) {
    throw InvalidArgument(
        fmt::format("{} rows from row {} on are asked for, '{}' has {}", count, first, path_, layout_.rows));
  }
}

void MatrixFile::read_values(int64_t first, int64_t count, void* out) const {
  const int64_t bytes = layout_.element_bytes();
  read_fully(file_, path_, layout_.data_offset + first * bytes, out, count * bytes);
}

}  // namespace kith
