#include <kith/vector_file.hpp>

#include <kith/error.hpp>

#include "core/parallel_for.hpp"
#include "io/file_format.hpp"
#include "io/matrix_file.hpp"
#include "io/matrix_file_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace kith {
namespace {

DType vector_dtype(const MatrixFile& file) {
  const ElementTraits& traits = traits_of(file.layout().element);
  if (!traits.dtype) {
    throw InvalidArgument(fmt::format("'{}' holds ids ({}), not vectors; vectors are f32 or u8, read ids with IdFile",
                                      file.path(), traits.name));
  }
  return *traits.dtype;
}

ElementType vector_element(DType dtype, const std::string& path) {
  for (const ElementTraits& traits : kElementTraits) {
    if (traits.dtype == dtype) return traits.element;
  }
  throw InvalidArgument(fmt::format("'{}' cannot hold {} vectors; files hold f32 or u8", path, name_of(dtype)));
}

// What is moved to or from a file must fit it and be where the host can reach it.
void check_matrix(const MatrixView& matrix, DType dtype, int64_t cols, const std::string& path) {
  if (matrix.dtype() != dtype || matrix.cols() != cols) {
    throw InvalidArgument(fmt::format("a matrix of {} columns of {} was given for '{}', which has {} columns of {}",
                                      matrix.cols(), name_of(matrix.dtype()), path, cols, name_of(dtype)));
  }
  if (!matrix.empty() && !matrix.space().host_readable()) {
    throw InvalidArgument(fmt::format("a matrix in device memory was given for '{}'; copy it to the host first", path));
  }
}

bool contiguous(const MatrixView& matrix) { return matrix.row_stride() == matrix.cols() || matrix.rows() <= 1; }

// Rows that lie apart: many short ones are read at once and then put in their places, long ones go there directly.
void read_apart(const MatrixFile& file, int64_t first, const MutableMatrixView& out) {
  const int64_t cols = out.cols();
  const int64_t row_bytes = file.layout().row_bytes();
  const int64_t piece_rows = kPieceBytes / row_bytes;
  if (piece_rows <= 1) {
    for (int64_t i = 0; i < out.rows(); ++i) file.read_values((first + i) * cols, cols, out.row(i));
    return;
  }
  std::array<std::byte, kPieceBytes> piece;
  for (int64_t begin = 0; begin < out.rows(); begin += piece_rows) {
    const int64_t count = std::min(piece_rows, out.rows() - begin);
    file.read_values((first + begin) * cols, count * cols, piece.data());
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(out.row(begin + i), piece.data() + i * row_bytes, static_cast<size_t>(row_bytes));
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
  check_matrix(out, dtype(), cols(), path());
  impl_->file.check_rows(first, out.rows());
  if (out.empty()) return;
  if (contiguous(out)) {
    impl_->file.read_values(first * cols(), out.rows() * cols(), out.data());
  } else {
    read_apart(impl_->file, first, out);
  }
}

struct VectorFileWriter::Impl {
  MatrixFileWriter file;
  DType dtype;
};

VectorFileWriter::VectorFileWriter(const std::string& path, DType dtype, int64_t rows, int64_t cols)
    : impl_(new Impl{MatrixFileWriter(path, vector_element(dtype, path), rows, cols), dtype}) {}
VectorFileWriter::~VectorFileWriter() = default;
VectorFileWriter::VectorFileWriter(VectorFileWriter&&) noexcept = default;
VectorFileWriter& VectorFileWriter::operator=(VectorFileWriter&&) noexcept = default;

void VectorFileWriter::append(const MatrixView& rows) {
  MatrixFileWriter& file = impl_->file;
  const FileLayout& layout = file.layout();
  check_matrix(rows, impl_->dtype, layout.cols, file.path());
  file.check_room(rows.rows());
  if (contiguous(rows)) return file.write(rows.data(), rows.rows() * layout.row_bytes());
  for (int64_t i = 0; i < rows.rows(); ++i) file.write(rows.row(i), layout.row_bytes());
}

void VectorFileWriter::sync() { impl_->file.sync(); }
void VectorFileWriter::commit() { impl_->file.commit(); }

namespace {

// Calls step(first, count) for `rows` rows, a few MiB at a time, with progress and a look at the cancel flag between.
template <typename Step>
void in_steps(std::string_view stage, int64_t rows, int64_t row_bytes, const Resources& resources, const Step& step) {
  constexpr int64_t kStepBytes = 4 << 20;
  const int64_t most = std::max<int64_t>(kStepBytes / std::max<int64_t>(row_bytes, 1), 1);
  ProgressMeter meter(stage, rows, resources);
  for (int64_t first = 0; first < rows; first += most) {
    const int64_t count = std::min(most, rows - first);
    step(first, count);
    meter.add(count);
    meter.poll();
  }
  meter.finish();
}

}  // namespace

MatrixBuffer read_vectors(const std::string& path, RowRange range, const Resources& resources) {
  const VectorFile file(path);
  const int64_t rest = file.rows() - std::clamp<int64_t>(range.first, 0, file.rows());
  const int64_t count = range.count == -1 ? rest : range.count;
  if (range.first < 0 || range.first > file.rows() || count < 0 || count > rest) {
    throw InvalidArgument(
        fmt::format("{} rows from row {} on are asked for, '{}' has {}", count, range.first, path, file.rows()));
  }

  MatrixBuffer vectors(file.dtype(), count, file.cols(), fmt::format("the vectors of '{}'", path), resources);
  in_steps("read", count, file.cols() * size_of(file.dtype()), resources, [&](int64_t first, int64_t rows) {
    file.read(range.first + first, vectors.mutable_view().slice(first, rows));
  });
  return vectors;
}

void write_vectors(const std::string& path, const MatrixView& vectors, const Resources& resources) {
  VectorFileWriter writer(path, vectors.dtype(), vectors.rows(), vectors.cols());
  in_steps("write", vectors.rows(), vectors.cols() * size_of(vectors.dtype()), resources,
           [&](int64_t first, int64_t rows) { writer.append(vectors.slice(first, rows)); });
  writer.commit();
}

FileContent content_of(const std::string& path) {
  const std::optional<ElementType> element = element_of(format_of(path));
  const ElementTraits& traits = traits_of(element ? *element : MatrixFile(path).layout().element);
  return traits.dtype ? FileContent::vectors : FileContent::ids;
}

}  // namespace kith
