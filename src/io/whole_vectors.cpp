// read_vectors, read_column and write_vectors: files in one call, in steps of a few MiB, with progress and a look at
// the cancel flag between two of them.
#include <kith/vector_file.hpp>

#include <kith/column_file.hpp>
#include <kith/error.hpp>

#include "core/parallel_for.hpp"
#include "io/dtype_conversion.hpp"
#include "io/matrix_file.hpp"
#include "io/vector_dtype.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
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

}  // namespace

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
  if (!vectors.empty() && !vectors.space().host_readable()) {
    throw InvalidArgument(fmt::format("a matrix in device memory was given for '{}'; copy it to the host first", path));
  }
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

}  // namespace kith
