// Where there are very many cells: for each cell those whose centres are nearest to its own, and its rows, so that rows
// rank these alone. On a GPU. Memory: 4 kCellsRanked bytes a cell, 8 a row.
#pragma once

#include "cuda/device_array.hpp"

#include <kith/view.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class NearCells {
 public:
  // `own`: each row's cell; `sizes`: the rows of each cell.
  NearCells(const MatrixView& centres, const uint32_t* own, const std::vector<int64_t>& sizes, int64_t rows,
            std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // Cells near each.
  int64_t count() const { return count_; }
  // Ascending, so that of equal distances the smaller cell comes first; those of the next cell follow.
  const uint32_t* numbers(int64_t cell) const { return numbers_.data() + cell * count_; }
  // All rows, one cell's after the other's.
  const uint32_t* members() const { return members_.data(); }

 private:
  int64_t count_;
  DeviceArray<uint32_t> numbers_;
  DeviceArray<uint32_t> members_;
};

}  // namespace kith
