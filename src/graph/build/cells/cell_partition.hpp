// A partition of a collection into k-means cells, and for every row the cells nearest to it.
//
// Centres are trained on a sample drawn by the seed. Rows are assigned to their nearest centre exactly. A row's probes
// are its own cell and then the nearest others by (distance, cell), also exact: among all cells, or, with more than
// kMostCellsRanked, among the kCellsRanked nearest to the own cell's centre (which hold 99.5 % of a row's 64 nearest of
// 4,096 cells, if they are 1,024).
//
// Probes are ranked when they are needed, ranked_at_once() per row at a time. When several ranks build one graph, each
// assigns and ranks the rows of its share, and has the cells of all rows.
//
// Cost: rows x cells distances per ranking, and once more if a row's query vector differs from its stored one. Memory:
// 4 (ranked probes + 2) bytes per row.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/cell_space.hpp"
#include "graph/build/cells/probe_forecast.hpp"
#include "graph/lists/graph_share.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

namespace kith {

class CellPartition {
 public:
  // `x` must outlive it. With control rows, forecasts how many probes the recall needs.
  CellPartition(const MatrixView& x, const CellsParams& params, const ControlRows* control, const Resources& resources);

  int64_t cells() const { return cells_; }
  int64_t probes() const { return probes_; }
  const ProbeForecast& forecast() const { return forecast_; }

  const RankWindow& ranked() const { return ranked_; }
  // Ranks the window, replacing the previous one.
  void rank(const RankWindow& window);
  RankWindow window_from(int64_t first, int64_t end) const { return rank_window(first, end, likely_, own_.size()); }
  // The cells of a row's probes, from a ranked probe on; probe 0 is its own cell.
  const uint32_t* ranks(int64_t row, int64_t probe) const {
    return ranks_.data() + (row - ranked_rows_.first) * ranked_.count + (probe - ranked_.first);
  }
  // The rows whose probes are ranked: all, or this rank's.
  const RankPart& ranked_rows() const { return ranked_rows_; }
  // Estimates the pairs that this many probes per row compare (pairs_by_probes), from the ranked ones.
  int64_t pairs(int64_t probes) const;
  // All rows, cell by cell; and those of a cell, in ascending order.
  const HostArray<uint32_t>& order() const { return members_; }
  const uint32_t* members(int64_t cell) const { return members_.data() + offsets_[cell]; }
  int64_t size(int64_t cell) const { return offsets_[cell + 1] - offsets_[cell]; }
  // The rows of a cell whose probes are ranked.
  std::span<const uint32_t> ranked_in(int64_t cell) const {
    const uint32_t* const end = members(cell) + size(cell);
    const auto place_of = [&](int64_t row) { return std::lower_bound(members(cell), end, row); };
    return {place_of(ranked_rows_.first), place_of(ranked_rows_.end())};
  }

 private:
  bool ranks_all() const { return cells_ <= kMostCellsRanked; }
  int64_t batch_rows() const;
  void assign();
  void foresee(const MatrixView& x, const CellsParams& params, const ControlRows& control);
  void list_members();
  void make_room(const RankWindow& window);
  void rank_rows();
  void rank_by_cell();

  int64_t cells_;
  int64_t probes_;
  ProbeForecast forecast_;
  int64_t likely_;  // expected number of probes
  RankWindow ranked_;
  const GraphShare* const share_;
  const RankPart ranked_rows_;
  const Resources resources_;
  const Resources quiet_;
  const CellSpace space_;
  const MatrixBuffer centres_;
  HostArray<uint32_t> own_;  // per row: its cell
  HostArray<uint32_t> ranks_;
  HostArray<int64_t> offsets_;
  HostArray<uint32_t> members_;
};

}  // namespace kith
