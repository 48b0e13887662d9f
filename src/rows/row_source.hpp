// Rows that can be had piece by piece, from memory or from a file: the queries of a search, the data of k-means.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith {

class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual int64_t rows() const = 0;
  // Where what is fetched lies.
  virtual MemorySpace space() const = 0;
  // Before the first fetch: up to `most` rows will be fetched at a time.
  virtual void open(int64_t most, const Resources& resources) = 0;
  // What is returned stays valid until the next fetch.
  virtual MatrixView fetch(int64_t first, int64_t count) = 0;
};

class ViewSource final : public RowSource {
 public:
  explicit ViewSource(const MatrixView& view) : view_(view) {}
  int64_t rows() const override { return view_.rows(); }
  MemorySpace space() const override { return view_.space(); }
  void open(int64_t, const Resources&) override {}
  MatrixView fetch(int64_t first, int64_t count) override { return view_.slice(first, count); }

 private:
  MatrixView view_;
};

class FileSource final : public RowSource {
 public:
  explicit FileSource(const VectorFile& file) : file_(file) {}
  int64_t rows() const override { return file_.rows(); }
  MemorySpace space() const override { return MemorySpace::host(); }
  void open(int64_t most, const Resources& resources) override {
    buffer_ = MatrixBuffer(file_.dtype(), most, file_.cols(), "rows read from a file", resources);
  }
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
