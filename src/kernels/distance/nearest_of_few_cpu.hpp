// The nearest of few rows, exactly, for every row of a matrix as it lies: k-means with few centres, at the speed of one
// pass over the matrix.
//
// The few are tables with a row for each column, so that a value of a row is multiplied with a vector of them.
// Products in f32 leave those that a bound on every rounding (error_bound.hpp) cannot rule out, mostly one; their
// canonical keys, from the few in double, decide. Rows are taken some at a time, and neither packed nor sorted. Of f32
// rows of up to 16 columns a vector holds a column of several rows, and distances are direct.
//
// Cost: rows x few x columns fused multiply-adds in f32 and rows x columns in double. Memory: 12 bytes a value of the
// few.
#pragma once

#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/few_rows_task.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class FewRows {
 public:
  static int64_t bytes_for(int64_t count, int64_t cols);
  // What one thread needs to compare with them.
  static int64_t scratch_floats(int64_t cols);

  FewRows() = default;
  // Squared L2, with an origin near the mean of what is compared, or inner products.
  FewRows(KeyKind kind, std::vector<float> origin, int64_t capacity, const Resources& resources);

  // f32, as many as there is room for or fewer.
  void set(const MatrixView& rows);

  // Labels of all rows, of any dtype, in host memory: the first by (key, number); and the canonical keys, which are
  // null where labels are all that is wanted: most rows then need no arithmetic in double. True where all values are
  // surely finite.
  bool nearest(const MatrixView& rows, int32_t* labels, float* keys, float* scratch) const;

  // Of squared L2: lowers distances[few * stride + row] to the canonical key where that is below nearest[row].
  void nearer(const MatrixView& rows, const float* nearest, float* distances, int64_t stride, float* scratch) const;

 private:
  FewRowsTask task() const;

  KeyKind kind_ = KeyKind::squared_l2;
  std::vector<float> origin_;  // padded
  int64_t cols_ = 0;
  int64_t count_ = 0;
  float norm_ = 0;            // the largest, of the few less the origin
  HostArray<float> table_;    // tiles with a row for each column: what its value is multiplied with
  HostArray<float> terms_;    // what the products are added to; infinite past the last
  HostArray<float> columns_;  // of short rows: a row for each column, as they are
  HostArray<float> lines_;    // of a handful: the table's values one after the other, padded with zeros
  HostArray<double> wide_;    // the few one after the other, padded with zeros
};

}  // namespace kith
