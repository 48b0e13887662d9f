#include "io/formats.hpp"

#include <kith/error.hpp>

#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

namespace kith {
namespace {

class VecsValues final : public ValueReader {
 public:
  VecsValues(FileDescriptor file, const FileLayout& layout, std::string path)
      : file_(std::move(file)), layout_(layout), path_(std::move(path)) {}

  void read(int64_t first, int64_t count, void* out) const override {
    auto* to = static_cast<std::byte*>(out);
    const int64_t cols = layout_.cols;
    const int64_t bytes = layout_.element_bytes();
    while (count > 0) {
      const int64_t row = first / cols;
      const int64_t col = first % cols;
      int64_t part = std::min(count, cols - col);
      if (part == cols && layout_.row_step() <= kPieceBytes) {
        part = cols * read_whole_rows(row, count / cols, to);
      } else {
        if (col == 0) check_row(row);
        const int64_t offset = row * layout_.row_step() + kVecsRowHeaderBytes + col * bytes;
        read_fully(file_, path_, offset, to, part * bytes);
      }
      first += part;
      count -= part;
      to += part * bytes;
    }
  }
  const FileDescriptor* mappable() const override { return &file_; }

  void check_row(int64_t row) const {
    std::array<std::byte, kVecsRowHeaderBytes> header;
    read_fully(file_, path_, row * layout_.row_step(), header.data(), kVecsRowHeaderBytes);
    check_header(row, header.data());
  }

 private:
  void check_header(int64_t row, const std::byte* header) const {
    int32_t cols = 0;
    std::memcpy(&cols, header, sizeof(cols));
    if (cols == layout_.cols) return;
    throw_corrupt(path_, row * layout_.row_step(),
                  fmt::format("row {} has {} columns, the rows before it have {}; all rows need the same number", row,
                              cols, layout_.cols));
  }
  // As many of the rows as fit a piece at once, their headers checked and left out.
  int64_t read_whole_rows(int64_t row, int64_t count, std::byte* out) const {
    std::array<std::byte, kPieceBytes> piece;
    const int64_t step = layout_.row_step();
    const int64_t bytes = layout_.row_bytes();
    const int64_t rows = std::min(count, kPieceBytes / step);
    read_fully(file_, path_, row * step, piece.data(), rows * step);
    for (int64_t i = 0; i < rows; ++i) {
      check_header(row + i, piece.data() + i * step);
      std::memcpy(out + i * bytes, piece.data() + i * step + kVecsRowHeaderBytes, static_cast<size_t>(bytes));
    }
    return rows;
  }

  FileDescriptor file_;
  FileLayout layout_;
  std::string path_;
};

}  // namespace

FileLayout parse_vecs_header(std::string_view head, int64_t size, ElementType element, const std::string& path) {
  FileLayout layout{element, 0, 0, 0, kVecsRowHeaderBytes};
  if (size == 0) return layout;
  if (size < kVecsRowHeaderBytes) throw_corrupt(path, size, "the file ends inside the header of its first row");
  int32_t cols = 0;
  std::memcpy(&cols, head.data(), sizeof(cols));
  if (cols < 1) throw_corrupt(path, 0, fmt::format("the first row has {} columns; rows need at least one", cols));
  layout.cols = cols;
  layout.rows = size / layout.row_step();
  const int64_t whole = layout.rows * layout.row_step();
  if (whole != size) {
    throw_corrupt(path, whole,
                  fmt::format("rows of {} columns take {} bytes each, but {} bytes remain after the last whole row; "
                              "the file is truncated or its rows differ in length",
                              cols, layout.row_step(), size - whole));
  }
  return layout;
}

OpenedMatrix open_vecs(OpenedFile opened, ElementType element, const std::string& path) {
  std::string head(static_cast<size_t>(std::min(opened.size, kVecsRowHeaderBytes)), '\0');
  read_fully(opened.file, path, 0, head.data(), static_cast<int64_t>(head.size()));
  const FileLayout layout = parse_vecs_header(head, opened.size, element, path);
  auto values = std::make_unique<VecsValues>(std::move(opened.file), layout, path);
  if (layout.rows > 1) values->check_row(layout.rows - 1);
  return {layout, std::move(values)};
}

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
