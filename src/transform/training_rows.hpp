// The training rows of a transform: distinct rows drawn by a seed from any source, as f32, after the transforms that
// were trained before. Fetched in pieces; the choice of rows does not depend on memory or device.
#pragma once

#include <kith/resources.hpp>

#include "kernels/dense/dense.hpp"
#include "rows/row_source.hpp"
#include "transform/transform_chain.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kith {

// The shape of the training rows, for footprints.
struct TrainingRowsShape {
  int64_t rows = 0;
  int64_t cols = 0;         // of these
  int64_t stored_cols = 0;  // before the steps
  std::vector<const TransformParts*> before = {};

  // What fetching so many of them takes.
  Footprint fetching(int64_t count, const Resources& resources) const;
};

class TrainingRows {
 public:
  // Up to `most` rows. What they refer to must outlive this.
  TrainingRows(RowSource& source, const TransformChain& before, int64_t most, uint64_t seed,
               const Resources& resources);

  int64_t rows() const { return static_cast<int64_t>(numbers_.size()); }
  int64_t cols() const { return cols_; }
  MemorySpace space() const { return source_.info().space; }
  // InvalidArgument, naming the row, for a NaN or an infinity among them. `out`: count x cols().
  void fetch(int64_t first, int64_t count, float* out) const;
  // The matrix that holds them, if it is in a GPU's memory and no transform precedes; otherwise nothing. Their row
  // numbers are numbers().
  std::optional<MatrixView> on_gpu() const;
  const std::vector<uint32_t>& numbers() const { return numbers_; }

 private:
  RowSource& source_;
  const TransformChain& before_;
  Resources resources_;
  std::vector<uint32_t> numbers_;  // ascending
  int64_t cols_ = 0;
};

}  // namespace kith
