#include "io/matrix_file.hpp"

#include <kith/error.hpp>

#include "io/read_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace kith {
namespace {

// .npy and the bin formats: one header, then the values.
OpenedMatrix open_plain(OpenedFile opened, const FileName& name, OneAxis one_axis) {
  const bool npy = name.format == FileFormat::npy;
  std::string head(static_cast<size_t>(std::min(opened.size, npy ? kNpyHeadLimit : kBinHeaderBytes)), '\0');
  read_fully(opened.file, name.path, 0, head.data(), static_cast<int64_t>(head.size()));
  const FileLayout layout = npy ? parse_npy_header(head, name.path, one_axis)
                                : parse_bin_header(head, element_of(name.format).value(), name.path);
  check_size(layout, opened.size, name.path);
  return {layout, std::make_unique<PlainValues>(std::move(opened.file), layout, name.path)};
}

OpenedMatrix open_matrix(OpenedFile opened, const FileName& name, OneAxis one_axis) {
  switch (name.format) {
    case FileFormat::fvecs:
    case FileFormat::bvecs:
    case FileFormat::ivecs: return open_vecs(std::move(opened), element_of(name.format).value(), name.path);
    case FileFormat::hdf5: return open_hdf5(std::move(opened), name);
    case FileFormat::idx: return open_idx(std::move(opened), name.path);
    default: return open_plain(std::move(opened), name, one_axis);
  }
}

}  // namespace

MatrixFile::MatrixFile(const std::string& path, OneAxis one_axis) : name_(parse_name_to_read(path)) {
  OpenedFile opened = open_for_reading(name_.file);
  file_bytes_ = opened.size;
  opened_ = open_matrix(std::move(opened), name_, one_axis);
}

void MatrixFile::check_rows(int64_t first, int64_t count) const {
  if (first < 0 || count < 0 || first > layout().rows - count) {
    throw InvalidArgument(
        fmt::format("{} rows from row {} were requested, but '{}' has {}", count, first, path(), layout().rows));
  }
}

ReadMemory MatrixFile::reserve_memory(const Resources& resources) const {
  return reserve_read_memory(opened_.values, path(), resources);
}

namespace {

bool is_vecs(FileFormat format) {
  return format == FileFormat::fvecs || format == FileFormat::bvecs || format == FileFormat::ivecs;
}

void check_element(const FileName& name, ElementType element) {
  const std::string_view given = traits_of(element).name;
  if (name.format == FileFormat::idx) {
    throw InvalidArgument(fmt::format(
        "'{}' cannot be written: IDX files are only read; choose another extension (.u8bin or .npy)", name.path));
  }
  const ElementType held = element_of(name.format).value_or(element);
  if (held != element) {
    throw InvalidArgument(
        fmt::format("'{}' cannot hold {} values: .{} files hold {}; choose another extension (.npy holds {})",
                    name.path, given, name_of(name.format), traits_of(held).name,
                    element == ElementType::bf16 ? "all but bf16, .bf16bin that" : "all"));
  }
  if (element == ElementType::bf16 && name.format != FileFormat::bf16bin) {
    throw InvalidArgument(
        fmt::format("'{}' cannot hold bf16 values: .{} files have no such dtype; write .bf16bin, or "
                    "convert the values to f32",
                    name.path, name_of(name.format)));
  }
}

// What stands before the values; nothing in *vecs files.
std::string make_header(const FileName& name, const FileLayout& shape) {
  if (is_vecs(name.format)) return "";
  if (name.format == FileFormat::hdf5) return make_hdf5_header(name, shape);
  if (name.format == FileFormat::npy) return make_npy_header(shape.element, shape.rows, shape.cols);
  return make_bin_header(shape.rows, shape.cols, name.path);
}

// Everything is checked here, before a file is made.
FileLayout checked_layout(const FileName& name, FileLayout layout) {
  check_element(name, layout.element);
  if (layout.rows < 0 || layout.cols < 0)
    throw InvalidArgument(fmt::format("a matrix cannot have the shape {} x {}", layout.rows, layout.cols));
  if (layout.rows > 0 && layout.cols == 0) {
    throw InvalidArgument(
        fmt::format("'{}' cannot hold {} rows of 0 columns; rows need at least one", name.path, layout.rows));
  }
  if (is_vecs(name.format)) {
    if (layout.cols > INT32_MAX) {
      throw InvalidArgument(
          fmt::format("'{}' cannot hold {} columns: this format counts up to {}; write an .npy "
                      "instead",
                      name.path, layout.cols, INT32_MAX));
    }
    layout.row_header_bytes = kVecsRowHeaderBytes;
  }
  layout.data_offset = static_cast<int64_t>(make_header(name, layout).size());
  if (layout.overflows()) {
    throw InvalidArgument(
        fmt::format("'{}' cannot hold {}: more bytes than a file can have", name.path, describe(layout)));
  }
  if (name.format == FileFormat::hdf5) check_hdf5_target(name);
  return layout;
}

}  // namespace

MatrixFileWriter::MatrixFileWriter(const std::string& path, ElementType element, int64_t rows, int64_t cols)
    : MatrixFileWriter(parse_file_name(path), {element, rows, cols}) {}

MatrixFileWriter::MatrixFileWriter(const FileName& name, const FileLayout& shape)
    : path_(name.path), layout_(checked_layout(name, shape)), file_(name.file) {
  file_.write(make_header(name, layout_).data(), layout_.data_offset);
}

void MatrixFileWriter::check_room(int64_t rows) const {
  const int64_t room = layout_.rows - rows_written();
  if (rows < 0 || rows > room) {
    throw InvalidArgument(fmt::format("{} rows are appended to '{}', which was created for {} and has room for {} more",
                                      rows, path(), layout_.rows, room));
  }
}

void MatrixFileWriter::write(const void* values, int64_t bytes) {
  if (layout_.row_header_bytes > 0) return write_with_row_headers(values, bytes);
  file_.write(values, bytes);
  bytes_written_ += bytes;
}

void MatrixFileWriter::write_made(int64_t bytes, const AtomicFileWriter::Fill& fill) {
  if (layout_.row_header_bytes > 0) throw Unsupported("rows with headers of their own are written one after the other");
  file_.write_made(bytes, fill);
  bytes_written_ += bytes;
}

void MatrixFileWriter::write_with_row_headers(const void* values, int64_t bytes) {
  const auto* from = static_cast<const std::byte*>(values);
  const auto cols = static_cast<int32_t>(layout_.cols);
  const int64_t row_bytes = layout_.row_bytes();
  if (bytes == 0 || row_bytes == 0) return file_.write(from, 0);  // which says whether the writer is still there
  while (bytes > 0) {
    const int64_t in_row = bytes_written_ % row_bytes;
    if (in_row == 0) file_.write(&cols, sizeof(cols));
    const int64_t part = std::min(bytes, row_bytes - in_row);
    file_.write(from, part);
    bytes_written_ += part;
    bytes -= part;
    from += part;
  }
}

void MatrixFileWriter::sync() { file_.sync(); }

void MatrixFileWriter::commit() {
  if (rows_written() != layout_.rows) {
    throw InvalidState(fmt::format("'{}' was created for {} rows and got {}; append the missing rows before commit",
                                   path(), layout_.rows, rows_written()));
  }
  file_.commit();
}

}  // namespace kith
