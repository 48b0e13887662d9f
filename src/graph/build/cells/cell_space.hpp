// The vectors by which a collection is partitioned into cells: rows near by the metric are near by l2 in this space.
//
//   cosine          normalized rows
//   inner_product   a stored row gets one more coordinate, which gives all rows the same norm; a query gets 0 there:
//                   then |q - x|^2 decreases as q x grows (the usual reduction)
//   all others      the rows themselves
//
// A row's vector depends only on the row (and on the longest row), so cells do not depend on batches.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith {

// A row as a stored vector, or as a query.
enum class CellSide : uint8_t { found, looking };

class CellSpace {
 public:
  CellSpace(const MatrixView& x, Metric metric, const Resources& resources);
  // For a part x of a collection whose longest row is known: its squared norm.
  CellSpace(const MatrixView& x, Metric metric, double longest)
      : x_(x), metric_(metric), extra_(metric == Metric::inner_product), longest_(longest) {}

  int64_t rows() const { return x_.rows(); }
  int64_t cols() const { return x_.cols() + (extra_ ? 1 : 0); }
  // Whether a row's query vector differs from its stored one.
  bool has_two_sides() const { return extra_; }
  bool is_identity() const { return metric_ != Metric::cosine && !extra_; }

  // The vectors of rows first, first + 1, ... `memory` has room for them and is unused if they are the rows
  // themselves.
  MatrixView range(int64_t first, int64_t count, CellSide side, MatrixBuffer& memory, const Resources& resources) const;
  // Those of the listed rows; f32.
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

// The squared norm of the longest row, which inner_product needs; 0 for other metrics.
double longest_row(const MatrixView& x, Metric metric, const Resources& resources);
// Columns of the vectors in cell space.
constexpr int64_t cell_cols(int64_t cols, Metric metric) { return cols + (metric == Metric::inner_product ? 1 : 0); }

}  // namespace kith
