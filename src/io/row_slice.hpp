// Some consecutive rows of a file, or of several, as rows of their own.
#pragma once

#include <kith/row_reader.hpp>
#include <kith/vector_file.hpp>

#include <cstdint>
#include <memory>

namespace kith {

// The file must outlive it.
class RowSlice final : public RowReader {
 public:
  RowSlice(const VectorFile& file, int64_t first, int64_t count) : file_(file), first_(first), count_(count) {}

  const std::string& path() const override { return file_.path(); }
  DType dtype() const override { return file_.dtype(); }
  int64_t rows() const override { return count_; }
  int64_t cols() const override { return file_.cols(); }
  void read_rows(int64_t first, int64_t count, void* out) const override {
    file_.read(first_ + first, MutableMatrixView(out, dtype(), {count, cols(), cols()}));
  }
  int64_t memory_bytes() const override { return file_.memory_bytes(); }
  RowPlace place_of(int64_t row) const override { return file_.place_of(first_ + row); }

 private:
  const VectorFile& file_;
  const int64_t first_;
  const int64_t count_;
};

inline VectorFile slice_of(const VectorFile& file, int64_t first, int64_t count) {
  return VectorFile(std::make_shared<RowSlice>(file, first, count));
}

}  // namespace kith
