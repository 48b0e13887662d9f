// Two vector files read as one, the rows of the first before those of the second. Both must outlive it.
#pragma once

#include <kith/row_reader.hpp>
#include <kith/vector_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace kith {

class PairRowReader final : public RowReader {
 public:
  PairRowReader(const VectorFile& a, const VectorFile& b) : a_(a), b_(b), path_(a.path()) {}

  const std::string& path() const override { return path_; }
  DType dtype() const override { return a_.dtype(); }
  int64_t rows() const override { return a_.rows() + b_.rows(); }
  int64_t cols() const override { return a_.cols(); }
  void read_rows(int64_t first, int64_t count, void* out) const override {
    const int64_t of_a = std::clamp<int64_t>(a_.rows() - first, 0, count);
    auto* const bytes = static_cast<std::byte*>(out);
    const int64_t behind = of_a * cols() * size_of(dtype());
    if (of_a > 0) a_.read(first, MutableMatrixView(bytes, dtype(), {of_a, cols(), cols()}));
    if (of_a < count) {
      b_.read(first + of_a - a_.rows(), MutableMatrixView(bytes + behind, dtype(), {count - of_a, cols(), cols()}));
    }
  }
  int64_t memory_bytes() const override { return a_.memory_bytes() + b_.memory_bytes(); }
  RowPlace place_of(int64_t row) const override {
    return row < a_.rows() ? a_.place_of(row) : b_.place_of(row - a_.rows());
  }

 private:
  const VectorFile& a_;
  const VectorFile& b_;
  const std::string path_;
};

}  // namespace kith
