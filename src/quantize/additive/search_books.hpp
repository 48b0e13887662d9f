// Codebooks for the search for codes: without the mean of each book and rounded to a grid, together with the means and,
// for the form that multiplies residuals, the tables of the nearest codeword. All means are subtracted from the rows,
// so that a mean far larger than the spread, in whichever book, does not make the grid coarse.
//
// Memory: 4 bytes per value of the codebooks; 16 more once nearest() was called.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "kernels/assign/codewords_cpu.hpp"
#include "quantize/additive/codebooks.hpp"

#include <cmath>
#include <cstdint>
#include <mutex>
#include <vector>

namespace kith {

// The grid of the search: multiples of a power of two, coarse enough that a row minus any sum of codewords is exact in
// f32. Then residuals do not depend on the order in which codewords are added and removed, and every device and form of
// the search computes the same bits.
//
// The grid depends only on the codebooks without their means. Let S be the sum over the books of their largest value,
// and 2^e the first power of two above it. The step is 2^(e-22), so that codewords, their sums, and rows up to 2^(e+1)
// stay below 2^24 steps. Larger rows are searched in float64. Trained codebooks are on their grid; others are rounded
// for the search, by up to half a step, but decoded unchanged.
class CodewordGrid {
 public:
  CodewordGrid() = default;
  explicit CodewordGrid(const Codebooks& books);

  double step() const { return step_; }
  double most() const { return most_; }    // the largest value that it can hold; negative: none
  double shift() const { return shift_; }  // the constant that rounded() adds and subtracts
  // Whether the grid can hold a value of a row. False for NaN.
  bool holds(double value) const { return std::abs(value) <= most_; }
  // Rounds to the nearest step (ties to even) by adding and subtracting a large constant.
  float rounded(double value) const { return static_cast<float>(value + shift_ - shift_); }

 private:
  double step_ = 1;
  double shift_ = 0;
  double most_ = 0;
};

// Rounds codebooks to their grid.
void round_to_grid(float* values, int64_t books, int bits, int64_t cols);

class SearchBooks {
 public:
  SearchBooks(const Codebooks& given, const Resources& resources);

  const Codebooks& books() const { return rounded_; }      // moved, on the grid
  const double* origin() const { return origin_.data(); }  // the sum of all means, which is subtracted from rows
  const CodewordGrid& grid() const { return grid_; }
  const float* mean(int64_t k) const { return means_.data() + k * rounded_.cols; }  // on the grid too
  // Moves a row, and rounds it to the grid if all of its values fit; returns whether they do.
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
