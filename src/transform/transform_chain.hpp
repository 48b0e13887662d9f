// Steps that vectors go through before they are compressed, one after the other: linear maps, shifts, a scaling to
// length 1, zeros behind the last column. A trained transform (PCA, OPQ, a random rotation) is one such step or two.
//
// What comes out is f32 and has one meaning, the same bits on every processor and GPU:
//
//   linear       y_j = sum of matrix_ji x_i in the lanes and the tree of kernels/distance/canonical.hpp, rounded once;
//                an offset is one more column, behind the last, of a vector whose value there is 1
//   shift        x + offset, one f32 addition
//   unit_length  x times 1 / |x| in float64, rounded once; a zero vector stays zero
//   padding      exact
//
// Rows go through all steps some at a time: beside the result there are two pieces of rows, of a few megabytes, or
// smaller ones where the memory limit asks for that. Cost: in x out multiply-adds in float64 a row for a linear step
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
  // InvalidArgument where the parts do not fit each other.
  Transform(TransformParts parts, const Resources& resources);
  // What a step of such a shape holds, and what making it takes: that, and a check of whether it leads back.
  static Footprint held(TransformParts::Kind kind, int64_t in, int64_t out);
  static Footprint footprint(TransformParts::Kind kind, int64_t in, int64_t out, const Resources& resources);

  const TransformParts& parts() const { return parts_; }
  int64_t bytes() const;  // of host memory, which counts against the limit
  int64_t in() const { return parts_.in; }
  int64_t out() const { return parts_.out; }
  // Whether there is a way back: a linear step has one where its matrix is orthonormal. Its transpose then gives the
  // nearest vector where columns were dropped.
  bool reversible() const { return orthonormal_; }
  // Unsupported where there is none.
  void check_reversible() const;

 private:
  TransformParts parts_;
  CountedBytes counted_;
  bool orthonormal_ = true;
};

class TransformChain {
 public:
  TransformChain() = default;
  // InvalidArgument where one's columns are not what the next one takes.
  explicit TransformChain(std::vector<std::shared_ptr<const Transform>> steps);
  static TransformChain from_parts(std::vector<TransformParts> parts, const Resources& resources);

  bool empty() const { return steps_.empty(); }
  const std::vector<std::shared_ptr<const Transform>>& steps() const { return steps_; }
  std::vector<TransformParts> parts() const;
  // Columns that go in and come out; InvalidState where there is no step.
  int64_t in() const;
  int64_t out() const;
  int64_t widest() const;  // the most columns that rows have on their way
  bool reversible() const;

  TransformChain then(std::shared_ptr<const Transform> step) const;

  // Rows of any dtype to f32 rows of out() columns, elsewhere in memory. Both may lie in a GPU's memory, which then
  // does the work; complete on return. Without steps rows are widened to f32.
  void apply(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) const;
  // The way back, f32 to f32: exact up to rounding where nothing was lost. Lengths are not known any more: rows of unit
  // length stay as they are.
  void reverse(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) const;
  // What the larger of the two takes at least for such rows, beside them and the output, which lies where they do.
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
