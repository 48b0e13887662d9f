// The vectors of one file, as a RowReader.
#pragma once

#include <kith/row_reader.hpp>

#include "io/matrix_file.hpp"

#include <string>

namespace kith {

class FileRows final : public RowReader {
 public:
  // InvalidArgument for a file of ids.
  explicit FileRows(const std::string& path);

  const std::string& path() const override { return file_.path(); }
  DType dtype() const override { return dtype_; }
  int64_t rows() const override { return file_.layout().rows; }
  int64_t cols() const override { return file_.layout().cols; }
  void read_rows(int64_t first, int64_t count, void* out) const override;
  // Takes no memory but a piece on the stack, however long a row is.
  void read(int64_t first, const MutableMatrixView& out) const override;
  int64_t memory_bytes() const override { return file_.values().memory_bytes(); }
  void free_memory() const override { file_.values().free_memory(); }

 private:
  MatrixFile file_;
  DType dtype_;
};

// Whether rows follow each other without gaps.
inline bool contiguous(const MatrixView& matrix) { return matrix.row_stride() == matrix.cols() || matrix.rows() <= 1; }

// The dtype of a file's vectors. InvalidArgument for a file of ids.
DType vector_dtype(const MatrixFile& file);

}  // namespace kith
