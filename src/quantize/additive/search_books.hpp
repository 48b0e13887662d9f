// Codebooks as the search for codes uses them: on their grid, with the mean codeword of each book and, for the form
// that multiplies residuals, the tables of the nearest codeword.
//
// Memory: 4 bytes for each value of the codebooks; 16 more once nearest() was asked for.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "quantize/additive/codebooks.hpp"
#include "quantize/additive/codeword_grid.hpp"
#include "quantize/product_nearest_cpu.hpp"

#include <cstdint>
#include <mutex>
#include <vector>

namespace kith {

class SearchBooks {
 public:
  SearchBooks(const Codebooks& given, const Resources& resources);

  const Codebooks& books() const { return rounded_; }  // on the grid
  const CodewordGrid& grid() const { return grid_; }
  const float* mean(int64_t k) const { return means_.data() + k * rounded_.cols; }  // on the grid too
  // From any thread.
  const NearestCodeword& nearest(int64_t k) const;

 private:
  CodewordGrid grid_;
  HostArray<float> values_;
  HostArray<float> means_;
  Codebooks rounded_;
  mutable std::vector<NearestCodeword> nearest_;
  mutable std::vector<std::once_flag> made_;
};

}  // namespace kith
