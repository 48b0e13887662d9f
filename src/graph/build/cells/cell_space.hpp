// The vectors that a collection is cut into cells by: rows near each other by the metric lie near each other in l2.
//
//   cosine          rows of length 1
//   inner_product   a row that is found, with one more coordinate that gives all the same length; a row that looks for
//                   others has 0 there: then |q - x|^2 falls as q x grows (the usual reduction)
//   all others      the rows themselves
//
// What comes of a row depends on it alone (and on the longest row), so that cells do not depend on batches.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith {

// A row as others find it, and as it looks for others.
enum class CellSide : uint8_t { found, looking };

class CellSpace {
 public:
  CellSpace(const MatrixView& x, Metric metric, const Resources& resources);
  // Where the longest row of a collection, of which x is a part, is known: its squared norm.
  CellSpace(const MatrixView& x, Metric metric, double longest)
      : x_(x), metric_(metric), extra_(metric == Metric::inner_product), longest_(longest) {}

  int64_t rows() const { return x_.rows(); }
  int64_t cols() const { return x_.cols() + (extra_ ? 1 : 0); }
  // Whether a row has one vector as a row and another as a query.
  bool has_two_sides() const { return extra_; }
  bool is_identity() const { return metric_ != Metric::cosine && !extra_; }

  // The vectors of rows first, first + 1, ... `memory` has room for them and is not used where they are the rows
  // themselves.
  MatrixView range(int64_t first, int64_t count, CellSide side, MatrixBuffer& memory, const Resources& resources) const;
  // The listed rows; f32.
  MatrixBuffer listed(const uint32_t* rows, int64_t count, CellSide side, const Resources& resources) const;

  MatrixBuffer memory_for(int64_t rows, const Resources& resources) const;

  // The vector of one row.
  void make(int64_t row, CellSide side, float* out) const;

 private:
  const MatrixView x_;
  const Metric metric_;
  const bool extra_;
  double longest_ = 0;  // squared norm
};

// The squared norm of the longest row, by which inner products need to know all rows; 0 for other metrics.
double longest_row(const MatrixView& x, Metric metric, const Resources& resources);
// Columns of the vectors that cells see.
constexpr int64_t cell_cols(int64_t cols, Metric metric) { return cols + (metric == Metric::inner_product ? 1 : 0); }

}  // namespace kith
