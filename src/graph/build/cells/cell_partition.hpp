// A collection cut into k-means cells, and for every row the cells nearest to it.
//
// Centres are learned from a sample drawn by the seed; rows are assigned to their nearest centre exactly, and a row's
// probes are its own cell and then the nearest others by (distance, cell), exactly too: of all cells, or where these are
// more than kMostCellsRanked, of the kCellsRanked nearest to the own cell's centre (of a row's 64 nearest of 4,096 cells
// 99.5 % are among the 1,024 nearest to that centre).
//
// Only as many probes are ranked as are likely to be made; more when they are asked for, at the cost of ranking anew.
//
// Cost: rows x cells distances, twice where a row looks for others with another vector than it is found by. Memory:
// 4 (probes + 2) bytes a row.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/cell_space.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

class CellPartition {
 public:
  // `x` must outlive it.
  CellPartition(const MatrixView& x, const CellsWish& wish, const Resources& resources);

  int64_t cells() const { return cells_; }
  int64_t probes() const { return probes_; }
  // Of the probes the first so many are ranked.
  int64_t ranked() const { return ranked_; }
  // At least so many; no more than probes().
  void rank(int64_t count) {
    if (std::min(count, probes_) > ranked_) rank_anew(std::min(count, probes_));
  }
  void rank_anew(int64_t count);
  // The cells that a row is compared with, its own first.
  const uint32_t* ranks(int64_t row) const { return ranks_.data() + row * ranked_; }
  // All rows, cell after cell; and those of a cell, ascending.
  const HostArray<uint32_t>& order() const { return members_; }
  const uint32_t* members(int64_t cell) const { return members_.data() + offsets_[cell]; }
  int64_t size(int64_t cell) const { return offsets_[cell + 1] - offsets_[cell]; }

 private:
  bool ranks_all() const { return cells_ <= kMostCellsRanked; }
  void assign();
  void list_members();
  void make_room(int64_t count);
  void rank_rows();
  void rank_by_cell();

  int64_t cells_;
  int64_t probes_;
  int64_t ranked_ = 0;
  const Resources resources_;
  const Resources quiet_;
  const CellSpace space_;
  const MatrixBuffer centres_;
  HostArray<uint32_t> own_;  // cell of each row
  HostArray<uint32_t> ranks_;
  HostArray<int64_t> offsets_;
  HostArray<uint32_t> members_;
};

}  // namespace kith
