// Codebooks as the search for codes uses them: less the mean of each book, on their grid, with what is left of the means
// and, for the form that multiplies residuals, the tables of the nearest codeword. Rows are moved by all means: so that a
// mean far from the spread, wherever it lies in the codebooks, makes no grid coarse.
//
// Memory: 4 bytes for each value of the codebooks; 16 more once nearest() was asked for.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "quantize/additive/codebooks.hpp"
#include "quantize/additive/codeword_grid.hpp"
#include "quantize/product/product_nearest_cpu.hpp"

#include <cstdint>
#include <mutex>
#include <vector>

namespace kith {

class SearchBooks {
 public:
  SearchBooks(const Codebooks& given, const Resources& resources);

  const Codebooks& books() const { return rounded_; }  // moved, on the grid
  const double* origin() const { return origin_.data(); }  // all means: what rows are moved by
  const CodewordGrid& grid() const { return grid_; }
  const float* mean(int64_t k) const { return means_.data() + k * rounded_.cols; }  // on the grid too
  // A row's values as the search takes them: moved, and on the grid where all of them fit there, which is returned.
  bool move_row(float* row) const;
  // From any thread.
  const NearestCodeword& nearest(int64_t k) const;

 private:
  HostArray<float> values_;
  HostArray<double> origin_;
  HostArray<float> means_;
  Codebooks rounded_;
  CodewordGrid grid_;
  mutable std::vector<NearestCodeword> nearest_;
  mutable std::vector<std::once_flag> made_;
};

}  // namespace kith
