// One step that vectors go through before they are compressed: a linear map, a shift, a scaling to length 1, zeros
// behind the last column. A trained transform (PCA, OPQ, a random rotation) is one such step or two.
//
// What comes out is f32 and has one meaning, the same bits on every processor and GPU:
//
//   linear       y_j = sum of matrix_ji x_i in the lanes and the tree of kernels/distance/canonical.hpp, rounded once;
//                an offset is one more column, behind the last, of a vector whose value there is 1
//   shift        x + offset, one f32 addition
//   unit_length  x times 1 / |x| in float64, rounded once; a zero vector stays zero
//   padding      exact
//
// Cost: in x out multiply-adds in float64 a row for a linear step (kernels/distance/distance_block_cpu.hpp), a pass
// over the rows for the others.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/counted_bytes.hpp"
#include "transform/transform_parts.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// InvalidArgument unless the rows have `cols` columns and `out` is f32, as many rows x out_cols.
void check_transform_rows(const MatrixView& rows, int64_t cols, const MutableMatrixView& out, int64_t out_cols);

class Transform {
 public:
  // InvalidArgument where the parts do not fit each other.
  static std::shared_ptr<const Transform> from_parts(TransformParts parts, const Resources& resources);

  const TransformParts& parts() const { return parts_; }
  int64_t bytes() const;  // of host memory, which counts against the limit
  int64_t in() const { return parts_.in; }
  int64_t out() const { return parts_.out; }

  // Rows of any dtype to f32 rows of out() columns, elsewhere in memory. Both may lie in a GPU's memory, which then
  // does the work; complete on return.
  void apply(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) const;

  // The way back, f32 to f32: exact up to rounding where nothing was lost. A linear step goes back by its transpose,
  // which gives the nearest vector where columns were dropped; Unsupported where the matrix is not orthonormal. Lengths
  // are not known any more: rows of unit length stay as they are.
  void reverse(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) const;
  bool reversible() const { return orthonormal_; }
  // Throws what reverse() would.
  void check_reversible() const;

 private:
  Transform(TransformParts parts, const Resources& resources);

  TransformParts parts_;
  CountedBytes counted_;
  bool orthonormal_ = true;
};

}  // namespace kith
