// Transforms one after the other. Rows go through all of them some at a time: beside the result there are two pieces of
// rows, of a few megabytes, or smaller ones where the memory limit asks for that.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "transform/transform.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

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

  // What the steps take on the host beside rows: a matrix, and rows with a column more, up to 4 MiB of them.
  int64_t step_bytes(int64_t rows, int threads) const;
  // What apply() or reverse() takes at least beside rows and output, under a limit.
  int64_t run_bytes(int64_t rows, int threads) const;

  TransformChain then(std::shared_ptr<const Transform> step) const;

  // As Transform's. Without steps rows are widened to f32.
  void apply(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) const;
  void reverse(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) const;

 private:
  std::vector<std::shared_ptr<const Transform>> steps_;
};

// Whether both do the same to a vector, step by step.
bool same_transforms(const TransformChain& a, const TransformChain& b);

}  // namespace kith
