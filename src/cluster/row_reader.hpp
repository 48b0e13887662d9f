// The rows to cluster, which can be had piece by piece and one by one, from memory or from a file.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith {

class RowReader {
 public:
  virtual ~RowReader() = default;
  virtual int64_t rows() const = 0;
  // What is returned stays valid until the next fetch.
  virtual MatrixView fetch(int64_t first, int64_t count) = 0;
};

class ViewReader final : public RowReader {
 public:
  explicit ViewReader(const MatrixView& view) : view_(view) {}
  int64_t rows() const override { return view_.rows(); }
  MatrixView fetch(int64_t first, int64_t count) override { return view_.slice(first, count); }

 private:
  MatrixView view_;
};

class FileReader final : public RowReader {
 public:
  // Fetches up to `most` rows at a time, into memory of its own.
  FileReader(const VectorFile& file, int64_t most, const Resources& resources)
      : file_(file), buffer_(file.dtype(), most, file.cols(), "rows read from a file", resources) {}
  int64_t rows() const override { return file_.rows(); }
  MatrixView fetch(int64_t first, int64_t count) override {
    const MutableMatrixView out = buffer_.mutable_view().slice(0, count);
    file_.read(first, out);
    return out;
  }

 private:
  const VectorFile& file_;
  MatrixBuffer buffer_;
};

}  // namespace kith
