#include <kith/column_file.hpp>
#include <kith/error.hpp>
#include <kith/mapped_vectors.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/vector_file.hpp>

#include "core/parallel_for.hpp"
#include "io/dtype_conversion.hpp"
#include "io/file_list.hpp"
#include "io/file_list_rows.hpp"
#include "io/file_mapping.hpp"
#include "io/file_rows.hpp"
#include "io/matrix_file.hpp"
#include "io/read_memory.hpp"
#include "io/read_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kith {
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

// The rows first .. first + count - 1 are asked for.
void check_rows(int64_t first, int64_t count, const RowReader& file) {
  if (first < 0 || count < 0 || first > file.rows() - count) {
    throw InvalidArgument(
        fmt::format("{} rows from row {} were requested, but '{}' has {}", count, first, file.path(), file.rows()));
  }
}

}  // namespace

struct VectorFile::Impl {
  std::shared_ptr<const RowReader> rows;
};

VectorFile::VectorFile(const std::string& path)
    : impl_(new Impl{is_file_pattern(path) ? open_files(matching_files(path), path)
                                           : std::make_shared<const FileRows>(path)}) {}
VectorFile::VectorFile(std::shared_ptr<const RowReader> rows) : impl_(new Impl{std::move(rows)}) {
  if (impl_->rows == nullptr) throw InvalidArgument("a VectorFile needs a reader of rows, not null");
  if (impl_->rows->dtype() == DType::f64) {
    throw InvalidArgument(fmt::format("'{}' is f64, which is not read by pieces; give its rows as f32", path()));
  }
}
VectorFile::~VectorFile() = default;
VectorFile::VectorFile(VectorFile&&) noexcept = default;
VectorFile& VectorFile::operator=(VectorFile&&) noexcept = default;

VectorFile VectorFile::of_files(const std::vector<std::string>& paths) {
  if (paths.size() == 1) return VectorFile(paths.front());
  std::vector<std::string> all;
  for (const std::string& path : paths) {
    const std::vector<std::string> some = files_of(path);
    all.insert(all.end(), some.begin(), some.end());
  }
  if (all.empty()) throw InvalidArgument("an empty list of files was given; name at least one");
  const std::string name =
      all.size() == 1 ? all.front() : fmt::format("{} and {} more", all.front(), all.size() - 1);
  return VectorFile(open_files(all, name));
}

const std::string& VectorFile::path() const { return impl_->rows->path(); }
DType VectorFile::dtype() const { return impl_->rows->dtype(); }
int64_t VectorFile::rows() const { return impl_->rows->rows(); }
int64_t VectorFile::cols() const { return impl_->rows->cols(); }
int64_t VectorFile::files() const { return impl_->rows->files(); }

RowPlace VectorFile::place_of(int64_t row) const {
  check_rows(row, 1, *impl_->rows);
  return impl_->rows->place_of(row);
}

void VectorFile::read(int64_t first, const MutableMatrixView& out) const {
  check_matrix(out, cols(), path());
  check_rows(first, out.rows(), *impl_->rows);
  if (!out.empty()) impl_->rows->read(first, out);
}

ReadMemory VectorFile::reserve_memory(const Resources& resources) const {
  return reserve_read_memory(impl_->rows, path(), resources);
}

int64_t VectorFile::memory_bytes() const { return impl_->rows->memory_bytes(); }

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

struct MappedVectors::Impl {
  MappedMatrix mapped;
  MatrixBuffer read;
  MatrixView view;
  bool is_mapped = true;
};

MappedVectors::MappedVectors(const std::string& path, const Resources& resources) : impl_(std::make_unique<Impl>()) {
  const MatrixFile file(path);
  const DType dtype = vector_dtype(file);
  if (resources.options().host_memory_limit != kNoLimit) {
    check_mappable(file);  // what works with a limit works without
    impl_->read = read_vectors(path, {}, resources);
    impl_->view = impl_->read.view();
    impl_->is_mapped = false;
    return;
  }
  impl_->mapped = map_matrix(file);
  const FileLayout& layout = file.layout();
  impl_->view = MatrixView(impl_->mapped.values, dtype, {layout.rows, layout.cols, impl_->mapped.row_stride});
}

MappedVectors::~MappedVectors() = default;
MappedVectors::MappedVectors(MappedVectors&&) noexcept = default;
MappedVectors& MappedVectors::operator=(MappedVectors&&) noexcept = default;

MatrixView MappedVectors::view() const { return impl_->view; }
bool MappedVectors::is_mapped() const { return impl_->is_mapped; }

// read_vectors, read_column and write_vectors: files in one call, in steps of a few MiB, with progress and a look at
// the cancel flag between two of them.

namespace {

int64_t rows_per_step(int64_t row_bytes) {
  constexpr int64_t kStepBytes = 4 << 20;
  return std::max<int64_t>(kStepBytes / std::max<int64_t>(row_bytes, 1), 1);
}

// Calls step(first, count) for `rows` rows.
template <typename Step>
void in_steps(std::string_view stage, int64_t rows, int64_t most, const Resources& resources, const Step& step) {
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

MatrixBuffer read_rows(const VectorFile& file, RowRange range, DType dtype, const Resources& resources) {
  const int64_t rest = file.rows() - std::clamp<int64_t>(range.first, 0, file.rows());
  const int64_t count = range.count == -1 ? rest : range.count;
  if (range.first < 0 || range.first > file.rows() || count < 0 || count > rest) {
    throw InvalidArgument(fmt::format("{} rows from row {} were requested, but '{}' has {}", count, range.first,
                                      file.path(), file.rows()));
  }
  const ReadMemory memory = file.reserve_memory(resources);
  MatrixBuffer vectors(dtype, count, file.cols(), fmt::format("the vectors of '{}'", file.path()), resources);
  in_steps("read", count, rows_per_step(file.cols() * size_of(dtype)), resources, [&](int64_t first, int64_t rows) {
    file.read(range.first + first, vectors.mutable_view().slice(first, rows));
  });
  return vectors;
}

MatrixBuffer read_vectors(const std::string& path, RowRange range, const Resources& resources) {
  const VectorFile file(path);
  return read_rows(file, range, file.dtype(), resources);
}

MatrixBuffer read_vectors(const std::string& path, RowRange range, DType dtype, const Resources& resources) {
  return read_rows(VectorFile(path), range, dtype, resources);
}

MatrixBuffer read_column(const std::string& path, const Resources& resources) {
  const MatrixFile file(path, OneAxis::of_all);
  const DType dtype = vector_dtype(file);
  const FileLayout& layout = file.layout();
  if (layout.rows > 1 && layout.cols > 1) {
    throw InvalidArgument(fmt::format("'{}' holds {}; one row or one column is needed", path, describe(layout)));
  }
  const int64_t values = layout.rows * layout.cols;
  const ReadMemory memory = file.reserve_memory(resources);
  MatrixBuffer column(dtype, values, 1, fmt::format("the numbers of '{}'", path), resources);
  in_steps("read", values, rows_per_step(size_of(dtype)), resources,
           [&](int64_t first, int64_t count) { file.read_values(first, count, column.mutable_view().row(first)); });
  return column;
}

void write_vectors(const std::string& path, const MatrixView& vectors, const Resources& resources) {
  VectorFileWriter writer(path, vectors.dtype(), vectors.rows(), vectors.cols());
  in_steps("write", vectors.rows(), rows_per_step(vectors.cols() * size_of(vectors.dtype())), resources,
           [&](int64_t first, int64_t rows) { writer.append(vectors.slice(first, rows)); });
  writer.commit();
}

void write_vectors(const std::string& path, const MatrixView& vectors, DType dtype, const Resources& resources) {
  if (dtype == vectors.dtype()) return write_vectors(path, vectors, resources);
  check_matrix(vectors, vectors.cols(), path);
  VectorFileWriter writer(path, dtype, vectors.rows(), vectors.cols());
  const int64_t most = std::min(rows_per_step(vectors.cols() * size_of(dtype)), vectors.rows());
  MatrixBuffer converted(dtype, most, vectors.cols(), "converted rows", resources);
  in_steps("write", vectors.rows(), std::max<int64_t>(most, 1), resources, [&](int64_t first, int64_t rows) {
    const MutableMatrixView piece = converted.mutable_view().slice(0, rows);
    for (int64_t i = 0; i < rows; ++i) {
      convert_values(vectors.row(first + i), vectors.dtype(), piece.row(i), dtype, vectors.cols(),
                     {path, (first + i) * vectors.cols(), vectors.cols()});
    }
    writer.append(piece);
  });
  writer.commit();
}

MappedFile::MappedFile(const std::string& path) {
  const MatrixFile file(path);
  info_ = file.info();
  auto mapped = std::make_shared<MappedMatrix>(map_matrix(file));
  data_ = mapped->values;
  row_stride_ = mapped->row_stride;
  mapping_ = std::move(mapped);
}

}  // namespace kith
