// A collection cut into k-means cells on a GPU (cell_partition.hpp): the same cells and the same probes as on the CPU.
//
// Probes are ranked as far as they are asked for, more of them when they are needed: nobody knows before how many will
// be. Time: rows x cells products for each ranking, twice where a row looks for others with another vector than it is
// found by. Memory: 4 (ranked probes + 1) bytes a row.
#pragma once

#include "cuda/device_array.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/cell_space_cuda.hpp"
#include "graph/lists/control_rows.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kith {

// Where there are very many cells: for each cell those whose centres are nearest to its own, and its rows, so that rows
// rank these alone. Memory: 4 kCellsRanked bytes a cell, 8 a row.
class NearCells {
 public:
  // `own`: each row's cell; `sizes`: the rows of each cell.
  NearCells(const MatrixView& centres, const uint32_t* own, const std::vector<int64_t>& sizes, int64_t rows,
            std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // Cells near each.
  int64_t count() const { return count_; }
  // Ascending, so that of equal distances the smaller cell comes first; those of the next cell follow.
  const uint32_t* numbers(int64_t cell) const { return numbers_.data() + cell * count_; }
  // All rows, one cell's after the other's.
  const uint32_t* members() const { return members_.data(); }

 private:
  int64_t count_;
  DeviceArray<uint32_t> numbers_;
  DeviceArray<uint32_t> members_;
};

class CellPartitionCuda {
 public:
  CellPartitionCuda(const GraphRowsCuda& rows, const CellsWish& wish, std::shared_ptr<const DeviceContext> context,
                    const Resources& resources);

  int64_t probes() const { return probes_; }
  // Each row's own cell.
  const uint32_t* own() const { return own_.data(); }
  // Rows in each cell.
  const std::vector<int64_t>& sizes() const { return sizes_; }

  // Probes that are likely to reach a recall, by rows whose neighbours are known (launch_hint_places); 0: nobody knows.
  int64_t probes_for(const ControlRows& control, double recall);

  // Ranks at least the first `probes` cells of every row, unless they are.
  void rank(int64_t probes);
  int64_t ranked() const { return ranked_; }
  // rows x ranked(), the own cell first.
  const uint32_t* ranks() const { return ranks_.data(); }

 private:
  bool ranks_all() const { return cells_ <= kMostCellsRanked; }
  int64_t wanted_for(int64_t probes) const;
  int64_t batch_for(int64_t wanted) const;
  void learn_centres(const CellsWish& wish);
  void rank_all(int64_t probes);
  void rank_near(int64_t probes);
  void search(const MatrixView& queries, const MatrixView& centres, int64_t k) const;
  void count_sizes();

  const GraphRowsCuda& rows_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const CellSpaceCuda space_;
  const int64_t cells_;
  const int64_t probes_;
  int64_t ranked_ = 0;
  MatrixView centres_;
  DeviceArray<float> centre_memory_;
  DeviceArray<float> made_;         // rows as cells see them, a batch
  DeviceArray<int64_t> found_ids_;  // what a search of a batch finds
  DeviceArray<float> found_distances_;
  DeviceArray<uint32_t> own_;
  DeviceArray<uint32_t> ranks_;
  std::vector<int64_t> sizes_;
  std::optional<NearCells> near_;  // where these alone are ranked
};

}  // namespace kith
