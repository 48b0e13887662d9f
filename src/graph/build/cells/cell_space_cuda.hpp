// The vectors by which a collection is partitioned (cell_space.hpp), computed on a GPU with the same values as on the
// CPU.
#pragma once

#include "cuda/device_array.hpp"
#include "graph/build/cells/cell_space.hpp"
#include "graph/lists/graph_lists_cuda.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class CellSpaceCuda {
 public:
  CellSpaceCuda(const GraphRowsCuda& rows, Metric metric, std::shared_ptr<const DeviceContext> context,
                const Resources& resources);

  int64_t cols() const { return rows_.cols() + (extra_ ? 1 : 0); }
  bool has_two_sides() const { return extra_; }
  bool is_identity() const { return metric_ != Metric::cosine && !extra_; }

  // The vectors of rows first, first + 1, ...: the rows themselves if they are the same, else written to `memory`,
  // which has room for count x cols() floats.
  MatrixView range(int64_t first, int64_t count, CellSide side, float* memory) const;
  // The vectors of the rows in a device list; f32, in `memory`.
  MatrixView listed(const uint32_t* list, int64_t count, CellSide side, float* memory) const;

 private:
  MatrixView make(const uint32_t* list, int64_t first, int64_t count, CellSide side, float* memory) const;

  const GraphRowsCuda& rows_;
  const Metric metric_;
  const bool extra_;
  std::shared_ptr<const DeviceContext> context_;
  DeviceArray<double> squares_;  // the canonical squared norm of every row, if needed
  double longest_ = 0;
};

}  // namespace kith
