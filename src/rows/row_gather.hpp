// Rows of a collection in an order of the caller's: those with the given numbers, or all as they lie. A view; copies
// nothing.
#pragma once

#include <kith/view.hpp>

#include <cstdint>

namespace kith {

class RowGather {
 public:
  RowGather(const MatrixView& rows) : collection_(rows), count_(rows.rows()) {}
  RowGather(const MatrixView& collection, const uint32_t* numbers, int64_t count)
      : collection_(collection), numbers_(numbers), count_(count) {}

  const MatrixView& collection() const { return collection_; }
  int64_t rows() const { return count_; }
  DType dtype() const { return collection_.dtype(); }
  // The number of row i in the collection.
  int64_t number(int64_t i) const { return numbers_ == nullptr ? i : numbers_[i]; }

 private:
  MatrixView collection_;
  const uint32_t* numbers_ = nullptr;
  int64_t count_ = 0;
};

}  // namespace kith
