// What a transform is trained on: distinct rows drawn by a seed from wherever they lie, as f32, behind the transforms
// that were trained before. Fetched some at a time; which rows they are does not depend on memory or device.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>

#include "rows/row_source.hpp"
#include "transform/transform_chain.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class TrainingRows {
 public:
  // Up to `most` rows. What they refer to must outlive this.
  TrainingRows(RowSource& source, const TransformChain& before, int64_t most, uint64_t seed,
               const Resources& resources);

  int64_t rows() const { return static_cast<int64_t>(numbers_.size()); }
  int64_t cols() const { return cols_; }
  // InvalidArgument, naming the row, for a NaN or an infinity among them. `out`: count x cols().
  void fetch(int64_t first, int64_t count, float* out) const;

 private:
  RowSource& source_;
  const TransformChain& before_;
  Resources resources_;
  std::vector<uint32_t> numbers_;  // ascending
  int64_t cols_ = 0;
};

}  // namespace kith
