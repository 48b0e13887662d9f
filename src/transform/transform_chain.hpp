// A sequence of steps applied to vectors before they are compressed: linear maps, shifts, scaling to length 1, padding
// with zeros. A trained transform (PCA, OPQ, a random rotation) is one or two such steps.
//
// The output is f32, with the same bits on every processor and GPU:
//
//   linear       y_j = sum of matrix_ji x_i in the lanes and the tree of kernels/distance/canonical.hpp, rounded once;
//                an offset is one more column, behind the last, of a vector whose value there is 1
//   shift        x + offset, one f32 addition
//   unit_length  x times 1 / |x| in float64, rounded once; a zero vector stays zero
//   padding      exact
//
// Rows pass through all steps in pieces: beside the result there are two pieces of rows, of a few megabytes or, under a
// memory limit, less. Cost: in x out multiply-adds in float64 a row for a linear step
// (kernels/distance/distance_block_cpu.hpp), a pass over the rows for the others.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/counted_bytes.hpp"
#include "core/footprint.hpp"
#include "rows/rows_info.hpp"
#include "transform/transform_parts.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class Transform {
 public:
  // Throws InvalidArgument if the parts are inconsistent.
  Transform(TransformParts parts, const Resources& resources);
  // The memory of a step of such a shape; and of making it, including the check for an inverse.
  static Footprint held(TransformParts::Kind kind, int64_t in, int64_t out);
  static Footprint footprint(TransformParts::Kind kind, int64_t in, int64_t out, const Resources& resources);

  const TransformParts& parts() const { return parts_; }
  int64_t bytes() const;  // of host memory, which counts against the limit
  int64_t in() const { return parts_.in; }
  int64_t out() const { return parts_.out; }
  // Whether there is an inverse: a linear step has one if its matrix is orthonormal. If columns were dropped, the
  // transpose gives the nearest vector.
  bool reversible() const { return orthonormal_; }
  // Throws Unsupported if there is none.
  void check_reversible() const;

 private:
  TransformParts parts_;
  CountedBytes counted_;
  bool orthonormal_ = true;
};

class TransformChain {
 public:
  TransformChain() = default;
  // Throws InvalidArgument if a step's output does not fit the next one's input.
  explicit TransformChain(std::vector<std::shared_ptr<const Transform>> steps);
  static TransformChain from_parts(std::vector<TransformParts> parts, const Resources& resources);

  bool empty() const { return steps_.empty(); }
  const std::vector<std::shared_ptr<const Transform>>& steps() const { return steps_; }
  std::vector<TransformParts> parts() const;
  // Columns of the input and of the output; InvalidState without steps.
  int64_t in() const;
  int64_t out() const;
  int64_t widest() const;  // the most columns that rows have on their way
  bool reversible() const;

  TransformChain then(std::shared_ptr<const Transform> step) const;

  // Rows of any dtype to f32 rows of out() columns, elsewhere in memory. Both may be in a GPU's memory, which then
  // does the work; complete on return. Without steps rows are widened to f32.
  void apply(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) const;
  // The inverse, f32 to f32: exact up to rounding if nothing was lost. Lengths are lost: rows of unit length stay as
  // they are.
  void reverse(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) const;
  // The least memory of either for such rows, beside the input and the output, which is in the same memory.
  Footprint footprint(const RowsInfo& rows, const Resources& resources) const;

 private:
  std::vector<std::shared_ptr<const Transform>> steps_;
};

// What steps of these shapes take at least to transform such rows of the host's; their values do not matter.
Footprint transform_footprint(const std::vector<const TransformParts*>& steps, const RowsInfo& rows,
                              const Resources& resources);

// Whether both do the same to a vector, step by step.
bool same_transforms(const TransformChain& a, const TransformChain& b);

}  // namespace kith
