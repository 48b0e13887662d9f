// Some consecutive rows of a file, or of several, as rows of their own.
#pragma once

#include <kith/row_reader.hpp>
#include <kith/vector_file.hpp>

#include "ranks/agreement.hpp"

#include <memory>

namespace kith {

// The file must outlive it.
class RowSlice final : public RowReader {
 public:
  RowSlice(const VectorFile& file, RankPart part) : file_(file), part_(part) {}

  const std::string& path() const override { return file_.path(); }
  DType dtype() const override { return file_.dtype(); }
  int64_t rows() const override { return part_.count; }
  int64_t cols() const override { return file_.cols(); }
  void read_rows(int64_t first, int64_t count, void* out) const override {
    file_.read(part_.first + first, MutableMatrixView(out, dtype(), {count, cols(), cols()}));
  }
  int64_t memory_bytes() const override { return file_.memory_bytes(); }

 private:
  const VectorFile& file_;
  const RankPart part_;
};

inline VectorFile slice_of(const VectorFile& file, RankPart part) {
  return VectorFile(std::make_shared<RowSlice>(file, part));
}

}  // namespace kith
