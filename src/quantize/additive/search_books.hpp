// Codebooks as the search for codes uses them: less the mean of each book, on their grid, with what is left of the
// means and, for the form that multiplies residuals, the tables of the nearest codeword. Rows are moved by all means:
// so that a mean far from the spread, wherever it lies in the codebooks, makes no grid coarse.
//
// Memory: 4 bytes for each value of the codebooks; 16 more once nearest() was asked for.
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

// The grid on which codes are searched: multiples of a power of two, so coarse that a row less any sum of codewords is
// exact in f32. Then residuals do not depend on the order in which codewords come and go, and every device and form of
// the search works with the same bits.
//
// The grid follows from the codebooks alone, less the mean of each book. Let S be the sum over the
// books of their largest value, and 2^e the first power of two above it. Steps are 2^(e-22): codewords, their sums and
// rows up to 2^(e+1) stay below 2^24 steps. Rows beyond are searched in float64. Trained codebooks lie on their own
// grid; others are rounded for the search, by up to half a step, and decoded as they are.
class CodewordGrid {
 public:
  CodewordGrid() = default;
  explicit CodewordGrid(const Codebooks& books);

  double step() const { return step_; }
  double most() const { return most_; }    // of values that it holds; below 0: none
  double shift() const { return shift_; }  // what rounded() adds and takes off
  // Whether a value of a row is exact there once it was rounded. False for a NaN.
  bool holds(double value) const { return std::abs(value) <= most_; }
  // Rounds to the nearest step (ties to even) by adding and subtracting a large constant.
  float rounded(double value) const { return static_cast<float>(value + shift_ - shift_); }

 private:
  double step_ = 1;
  double shift_ = 0;
  double most_ = 0;
};

// Rounds codebooks to the grid that they then have.
void round_to_grid(float* values, int64_t books, int bits, int64_t cols);

class SearchBooks {
 public:
  SearchBooks(const Codebooks& given, const Resources& resources);

  const Codebooks& books() const { return rounded_; }      // moved, on the grid
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
