// Properties of rows that are known before they are read: shape, dtype, memory space.
#pragma once

#include <kith/dtype.hpp>
#include <kith/memory_space.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include "core/memory_budget.hpp"

#include <cstdint>

namespace kith {

struct RowsInfo {
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::f32;
  MemorySpace space;
  bool in_memory = true;  // else they are read from a file, piece by piece

  RowsInfo() = default;
  RowsInfo(int64_t r, int64_t c, DType type, MemorySpace where = {}) : rows(r), cols(c), dtype(type), space(where) {}
  explicit RowsInfo(const MatrixView& view) : RowsInfo(view.rows(), view.cols(), view.dtype(), view.space()) {}
  explicit RowsInfo(const VectorFile& file) : RowsInfo(file.rows(), file.cols(), file.dtype()) { in_memory = false; }

  int64_t row_bytes() const { return cols * size_of(dtype); }
  // A view of such rows for a call that only counts memory; it cannot be read.
  MatrixView counted_view() const { return {counted_only_memory(), dtype, {rows, cols, cols}, space}; }
  // Host memory for reading at most `most` rows at a time: two pieces of a file, or one that holds all rows.
  int64_t read_bytes(int64_t most) const {
    if (in_memory) return 0;
    return row_bytes() * (most < rows ? 2 * most : rows);
  }
};

}  // namespace kith
