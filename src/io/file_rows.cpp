#include "io/file_rows.hpp"

#include <kith/error.hpp>

#include "io/dtype_conversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace kith {
namespace {

// Through a piece of memory, where values cannot go straight to their place: rows that are not adjacent, or another
// dtype. Many short rows are read at once, long ones in parts.
void read_in_pieces(const MatrixFile& file, DType dtype, int64_t first, const MutableMatrixView& out) {
  const int64_t cols = out.cols();
  const int64_t bytes = size_of(dtype);
  const int64_t piece_values = kPieceBytes / bytes;
  const int64_t piece_rows = std::max<int64_t>(piece_values / cols, 1);
  alignas(8) std::array<std::byte, kPieceBytes> piece;
  for (int64_t row = 0; row < out.rows(); row += piece_rows) {
    const int64_t rows = std::min(piece_rows, out.rows() - row);
    for (int64_t col = 0; col < cols; col += piece_values) {
      const int64_t width = std::min(piece_values, cols - col);
      const int64_t from = (first + row) * cols + col;
      file.read_values(from, rows * width, piece.data());
      for (int64_t i = 0; i < rows; ++i) {
        convert_values(piece.data() + i * width * bytes, dtype, out.row(row + i) + col * size_of(out.dtype()),
                       out.dtype(), width, {file.path(), from + i * width, cols});
      }
    }
  }
}

}  // namespace

DType vector_dtype(const MatrixFile& file) {
  const ElementTraits& traits = traits_of(file.layout().element);
  if (!traits.dtype) {
    throw InvalidArgument(
        fmt::format("'{}' holds ids ({}), not vectors; give a file of vectors", file.path(), traits.name));
  }
  return *traits.dtype;
}

FileRows::FileRows(const std::string& path) : file_(path), dtype_(vector_dtype(file_)) {}

void FileRows::read_rows(int64_t first, int64_t count, void* out) const {
  file_.read_values(first * cols(), count * cols(), out);
}

void FileRows::read(int64_t first, const MutableMatrixView& out) const {
  const bool as_stored = out.dtype() == dtype();
  if (as_stored && contiguous(out)) {
    read_rows(first, out.rows(), out.data());
  } else if (as_stored && file_.layout().row_bytes() > kPieceBytes / 2) {
    for (int64_t i = 0; i < out.rows(); ++i) read_rows(first + i, 1, out.row(i));
  } else {
    read_in_pieces(file_, dtype(), first, out);
  }
}

// Whoever reads whole rows alone: a few of them at a time, at least one.
void RowReader::read(int64_t first, const MutableMatrixView& out) const {
  if (out.dtype() == dtype() && contiguous(out)) return read_rows(first, out.rows(), out.data());
  const int64_t row_bytes = cols() * size_of(dtype());
  const int64_t most = std::clamp<int64_t>(kPieceBytes / std::max<int64_t>(row_bytes, 1), 1, out.rows());
  std::vector<std::byte> piece(static_cast<size_t>(most * row_bytes));
  for (int64_t row = 0; row < out.rows(); row += most) {
    const int64_t count = std::min(most, out.rows() - row);
    read_rows(first + row, count, piece.data());
    for (int64_t i = 0; i < count; ++i) {
      const RowPlace place = place_of(first + row + i);
      convert_values(piece.data() + i * row_bytes, dtype(), out.row(row + i), out.dtype(), cols(),
                     {place.path, place.row * cols(), cols()});
    }
  }
}

}  // namespace kith
