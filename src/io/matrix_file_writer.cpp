#include "io/matrix_file_writer.hpp"

#include <kith/error.hpp>

#include "io/bin_header.hpp"
#include "io/file_format.hpp"
#include "io/npy_header.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

// Everything is checked here, before a file is made.
std::string make_header(const std::string& path, const FileLayout& shape) {
  const FileFormat format = format_of(path);
  const ElementType held = element_of(format).value_or(shape.element);
  if (held != shape.element) {
    throw InvalidArgument(
        fmt::format("'{}' cannot hold {} values: {} files hold {}; choose another ending (.npy holds all)", path,
                    traits_of(shape.element).name, ending_of(format), traits_of(held).name));
  }
  if (shape.rows < 0 || shape.cols < 0)
    throw InvalidArgument(fmt::format("a matrix of {} x {} cannot be", shape.rows, shape.cols));
  if (shape.rows > 0 && shape.cols == 0) {
    throw InvalidArgument(
        fmt::format("'{}' cannot hold {} rows of 0 columns; rows need at least one", path, shape.rows));
  }
  std::string header = format == FileFormat::npy ? make_npy_header(shape.element, shape.rows, shape.cols)
                                                 : make_bin_header(shape.rows, shape.cols, path);
  if (FileLayout{shape.element, shape.rows, shape.cols, static_cast<int64_t>(header.size())}.overflows()) {
    throw InvalidArgument(fmt::format("'{}' cannot hold {}: more bytes than a file can have", path, describe(shape)));
  }
  return header;
}

FileLayout behind(std::string_view header, FileLayout shape) {
  shape.data_offset = static_cast<int64_t>(header.size());
  return shape;
}

}  // namespace

MatrixFileWriter::MatrixFileWriter(const std::string& path, ElementType element, int64_t rows, int64_t cols)
    : MatrixFileWriter(path, {element, rows, cols, 0}, make_header(path, {element, rows, cols, 0})) {}

MatrixFileWriter::MatrixFileWriter(const std::string& path, const FileLayout& layout, std::string_view header)
    : layout_(behind(header, layout)), file_(path) {
  file_.write(header.data(), layout_.data_offset);
}

void MatrixFileWriter::check_room(int64_t rows) const {
  const int64_t room = layout_.rows - rows_written();
  if (rows < 0 || rows > room) {
    throw InvalidArgument(
        fmt::format("{} rows are appended to '{}', which was announced with {} and has room for {} more", rows, path(),
                    layout_.rows, room));
  }
}

void MatrixFileWriter::write(const void* values, int64_t bytes) {
  file_.write(values, bytes);
  bytes_written_ += bytes;
}

void MatrixFileWriter::sync() { file_.sync(); }

void MatrixFileWriter::commit() {
  if (rows_written() != layout_.rows) {
    throw InvalidState(fmt::format("'{}' was announced with {} rows and got {}; append the rest before commit", path(),
                                   layout_.rows, rows_written()));
  }
  file_.commit();
}

}  // namespace kith
