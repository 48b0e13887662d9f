// Inner products of codewords of different books, rounded to 16 bits, which the search for codes adds up instead of
// multiplying residuals (section 4.1 of the paper: shared pairwise tables, with their transposes, and unary tables).
//
// With all books and rows moved by the books' means, which does not change residuals, codeword j of book k has the cost
//
//   |c_j|^2 - 2 <x, c_j>  (unary: of the row)  +  sum over i != k of 2 <c_j, c_i>  (pairwise)  +  a term that does not
//   depend on j
//
// Terms of a book are rounded to multiples of a step, chosen so that all sums fit 16 bits. A sum is within window / 2
// of the cost: half a step per term, the errors of f32 products, and the rounding of the canonical cost. A codeword
// whose sum exceeds the smallest one by more than the window is not the best.
//
// Memory: 2 bytes per pair of codewords: 6.4 MB for 7 books of 256, 29 MB for 15. Cost of making them: codewords^2 x
// cols multiply-adds.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "core/host_device.hpp"
#include "kernels/distance/error_bound.hpp"
#include "quantize/additive/search_books.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

namespace kith {

// Scale of a book's rounded terms.
struct TableScale {
  double step = 1;
  double room = 0;      // half the range available to unary terms
  double constant = 0;  // the error is constant + norm linear + rounding (norm + norms)^2
  double linear = 0;
};

inline constexpr double kMostTableWindow = 4096;  // steps; a wider one rules out too few codewords
inline constexpr double kTableKeyRounding = 0x1p-22;

// The window in steps for a row of this norm after the move. Above kMostTableWindow, tables are not used for the row.
KITH_HOST_DEVICE inline double table_window(const TableScale& scale, double norm, double norms) {
  const double reach = norm + norms;
  if (!(reach * reach < kLargestSquaredNorm)) return HUGE_VAL;
  return ceil(2 * (scale.constant + norm * scale.linear + kTableKeyRounding * reach * reach) / scale.step) + 1;
}

class PairwiseTables {
 public:
  static constexpr int64_t kLeastWidth = 32;    // of a table's row: whole SIMD vectors
  static constexpr int16_t kMostScore = 32000;  // of any sum; 32767 is padding

  PairwiseTables(const SearchBooks& books, const Resources& resources);
  static int64_t width_for(const Codebooks& books);

  int64_t width() const { return width_; }
  // 2 <c_b of book i, c_j of book k> in steps of k, for all j: width() values.
  const int16_t* row(int64_t k, int64_t i, int64_t b) const {
    return values_.data() + ((k * books_ + i) * words_ + b) * width_;
  }
  const float* moved_words() const { return moved_.data(); }  // minus the books' means: all codewords x cols
  const float* squared_norms() const { return squares_.data(); }
  const TableScale& scale(int64_t k) const { return scales_[static_cast<size_t>(k)]; }
  double norms() const { return norms_; }                 // the sum of the books' largest, after the move
  const float* origin() const { return origin_.data(); }  // the sum of the means, which is subtracted from rows

 private:
  int64_t books_;
  int64_t words_;
  int64_t width_;
  HostArray<int16_t> values_;
  HostArray<float> moved_;
  HostArray<float> squares_;
  std::vector<float> origin_;
  std::vector<TableScale> scales_;
  double norms_ = 0;
};

}  // namespace kith
