#include <kith/vector_file.hpp>

#include <kith/error.hpp>

#include "core/parallel_for.hpp"
#include "io/dtype_conversion.hpp"
#include "io/matrix_file.hpp"
#include "io/matrix_file_writer.hpp"
#include "io/vector_dtype.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace kith {

DType vector_dtype(const MatrixFile& file) {
  const ElementTraits& traits = traits_of(file.layout().element);
  if (!traits.dtype) {
    throw InvalidArgument(
        fmt::format("'{}' holds ids ({}), not vectors; give a file of vectors", file.path(), traits.name));
  }
  return *traits.dtype;
}

namespace {

// What is moved to or from a file must fit it and be where the host can reach it.
void check_matrix(const MatrixView& matrix, int64_t cols, const std::string& path) {
  if (matrix.cols() != cols) {
    throw InvalidArgument(
        fmt::format("a matrix of {} columns was given for '{}', which has {} columns", matrix.cols(), path, cols));
  }
  if (!matrix.empty() && !matrix.space().host_readable()) {
    throw InvalidArgument(fmt::format("a matrix in device memory was given for '{}'; copy it to the host first", path));
  }
}

bool contiguous(const MatrixView& matrix) { return matrix.row_stride() == matrix.cols() || matrix.rows() <= 1; }

// Through a piece of memory, where values cannot go straight to their place: rows that lie apart, or another dtype.
// Many short rows are read at once, long ones in parts.
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

struct VectorFile::Impl {
  explicit Impl(const std::string& path) : file(path), dtype(vector_dtype(file)) {}
  MatrixFile file;
  DType dtype;
};

VectorFile::VectorFile(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
VectorFile::~VectorFile() = default;
VectorFile::VectorFile(VectorFile&&) noexcept = default;
VectorFile& VectorFile::operator=(VectorFile&&) noexcept = default;

const std::string& VectorFile::path() const { return impl_->file.path(); }
DType VectorFile::dtype() const { return impl_->dtype; }
int64_t VectorFile::rows() const { return impl_->file.layout().rows; }
int64_t VectorFile::cols() const { return impl_->file.layout().cols; }

void VectorFile::read(int64_t first, const MutableMatrixView& out) const {
  check_matrix(out, cols(), path());
  impl_->file.check_rows(first, out.rows());
  if (out.empty()) return;
  const bool as_stored = out.dtype() == dtype();
  if (as_stored && contiguous(out)) {
    impl_->file.read_values(first * cols(), out.rows() * cols(), out.data());
  } else if (as_stored && impl_->file.layout().row_bytes() > kPieceBytes / 2) {
    for (int64_t i = 0; i < out.rows(); ++i) impl_->file.read_values((first + i) * cols(), cols(), out.row(i));
  } else {
    read_in_pieces(impl_->file, dtype(), first, out);
  }
}

ReadMemory VectorFile::reserve_memory(const Resources& resources) const {
  return impl_->file.reserve_memory(resources);
}

int64_t VectorFile::memory_bytes() const { return impl_->file.values().memory_bytes(); }

struct VectorFileWriter::Impl {
  MatrixFileWriter file;
  DType dtype;
};

VectorFileWriter::VectorFileWriter(const std::string& path, DType dtype, int64_t rows, int64_t cols)
    : impl_(new Impl{MatrixFileWriter(path, element_of(dtype), rows, cols), dtype}) {}
VectorFileWriter::~VectorFileWriter() = default;
VectorFileWriter::VectorFileWriter(VectorFileWriter&&) noexcept = default;
VectorFileWriter& VectorFileWriter::operator=(VectorFileWriter&&) noexcept = default;

void VectorFileWriter::append(const MatrixView& rows) {
  MatrixFileWriter& file = impl_->file;
  const FileLayout& layout = file.layout();
  if (rows.dtype() != impl_->dtype) {
    throw InvalidArgument(
        fmt::format("{} rows were given for '{}', which was created as {}; convert them first, or "
                    "give the dtype to write_vectors",
                    name_of(rows.dtype()), file.path(), name_of(impl_->dtype)));
  }
  check_matrix(rows, layout.cols, file.path());
  file.check_room(rows.rows());
  if (contiguous(rows)) return file.write(rows.data(), rows.rows() * layout.row_bytes());
  for (int64_t i = 0; i < rows.rows(); ++i) file.write(rows.row(i), layout.row_bytes());
}

void VectorFileWriter::sync() { impl_->file.sync(); }
void VectorFileWriter::commit() { impl_->file.commit(); }

}  // namespace kith
