// The exact nearest of few centres for every row of a matrix in place, on the CPU: k-means with few centres takes about
// as long as reading the matrix.
//
// f32 products with a bound on all rounding errors (error_bound.hpp) rule out all centres but one, mostly; canonical
// keys, from centres in double, decide among the remaining ones. Rows are processed in small groups, without packing or
// sorting. The form depends on the shape: vectors of centres, vectors along the columns for up to seven centres
// (assign_very_few_cpu-inl.hpp), or vectors of rows if these are short (assign_columns_cpu-inl.hpp).
//
// Cost: rows x centres x columns fused multiply-adds in f32, and rows x columns in double. Memory: 12 bytes per value
// of the centres, 20 for short rows.
#pragma once

#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "kernels/assign/compare_task.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class CentreTable {
 public:
  // Scratch of one thread.
  static int64_t scratch_floats(int64_t capacity, int64_t cols);

  // Squared L2, with an origin near the mean of what is compared, or inner products. Up to kMostFewCentres.
  CentreTable(KeyKind kind, std::vector<float> origin, int64_t capacity, const Resources& resources);

  // f32, at most the capacity.
  void set(const MatrixView& centres);

  // Labels of all rows, of any dtype, in host memory: the first by (key, number); and the canonical keys, which are
  // null where labels are all that is wanted: most rows then need no arithmetic in double. True where all values are
  // surely finite.
  bool nearest(const MatrixView& rows, int32_t* labels, float* keys, float* scratch) const;

 private:
  bool has_short_rows() const { return cols_ <= kShortColumns && kind_ == KeyKind::squared_l2; }

  KeyKind kind_ = KeyKind::squared_l2;
  std::vector<float> origin_;  // padded
  int64_t cols_ = 0;
  HostArray<float> table_;  // as CompareTask has them, and those below
  HostArray<float> terms_;
  HostArray<float> columns_;
  HostArray<float> groups_;
  HostArray<float> lines_;
  HostArray<double> wide_;
  CompareTask task_;  // points into the arrays above, which do not move
};

}  // namespace kith
