// A collection cut into k-means cells on a GPU (cell_partition.hpp): the same cells and the same probes as on the CPU.
//
// Where parts of one process build one graph together (graph_share.hpp), the first learns the centres and foresees the
// probes; each assigns and ranks the rows of its share, and knows the cells of all.
//
// Time: rows x cells products for each ranking, and once more where a row looks for others with another vector than it
// is found by. Memory: 4 (ranked probes + 1) bytes a row.
#pragma once

#include <kith/kmeans.hpp>

#include "cuda/device_array.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/cell_ranks_cuda.hpp"
#include "graph/build/cells/cell_space_cuda.hpp"
#include "graph/build/cells/probe_forecast.hpp"
#include "graph/lists/control_rows.hpp"
#include "graph/lists/graph_share.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kith {

// Where there are very many cells: for each cell those whose centres are nearest to its own, and its rows, so that rows
// rank these alone. Memory: 4 kCellsRanked bytes a cell, 8 a row.
class NearCells {
 public:
  // Lists these rows. `own`: the cell of each; `sizes`: how many of them are in each cell.
  NearCells(const MatrixView& centres, const uint32_t* own, const std::vector<int64_t>& sizes, const RankPart& rows,
            std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // Cells near each.
  int64_t count() const { return count_; }
  // Ascending, so that of equal distances the smaller cell comes first; those of the next cell follow.
  const uint32_t* numbers(int64_t cell) const { return numbers_.data() + cell * count_; }
  // These rows, one cell's after the other's.
  const uint32_t* members() const { return members_.data(); }

 private:
  int64_t count_;
  DeviceArray<uint32_t> numbers_;
  DeviceArray<uint32_t> members_;
};

class CellPartitionCuda final : public CellPlaces {
 public:
  // Where a recall is wanted, the control rows foresee how many probes it needs, with their ties, which are given then.
  // `share`: of parts; null: of nobody else.
  CellPartitionCuda(const GraphRowsCuda& rows, const CellsWish& wish, const ControlRows& control,
                    const ControlTies* ties, const GraphShare* share, std::shared_ptr<const DeviceContext> context,
                    const Resources& resources);

  int64_t cells() const override { return cells_; }
  const ProbeForecast& forecast() const { return forecast_; }
  // Each row's own cell.
  const uint32_t* own() const { return own_.data(); }
  // Rows in each cell.
  const std::vector<int64_t>& sizes() const { return sizes_; }

  const RankWindow& ranked() const { return ranked_; }
  // Ranks the window, in the place of the one before.
  void rank(const RankWindow& window);
  RankWindow window_from(int64_t first, int64_t end) const { return rank_window(first, end, likely_, own_.size()); }
  // The rows whose probes are ranked: all, or those of this part.
  const RankPart& ranked_rows() const { return ranked_rows_; }
  // The cells of their probes first .. end - 1, which are ranked.
  CellColumns columns(int64_t first, int64_t end) const {
    return {ranks_.data(),           ranked_.count,      ranked_rows_.count, first - ranked_.first,
            end - ranked_.first, ranked_rows_.first};
  }
  // The pairs that so many probes of every row compare (pairs_by_probes), by the first ones, which are ranked.
  int64_t pairs(int64_t probes) const;

  void find_own(std::span<const uint32_t> rows, uint32_t* own) override;
  void find_places(std::span<const uint32_t> rows, std::span<const uint32_t> own,
                   std::span<const PlaceQuestion> questions, uint32_t* places) override;

 private:
  bool ranks_all() const { return cells_ <= kMostCellsRanked; }
  int64_t wanted_for(int64_t probes) const;
  int64_t batch_for(int64_t wanted) const;
  void learn_centres(const CellsWish& wish);
  std::optional<KMeans> learn_from_sample(const CellsWish& wish) const;
  void put_centres(const MatrixView& learned) const;
  void rank_all();
  void rank_near();
  void search(const MatrixView& queries, const MatrixView& centres, int64_t k) const;
  std::vector<int64_t> sizes_among(const RankPart& rows) const;

  const GraphRowsCuda& rows_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const CellSpaceCuda space_;
  const GraphShare* const share_;
  const RankPart ranked_rows_;
  const int64_t cells_;
  const int64_t probes_;
  ProbeForecast forecast_;
  int64_t likely_;  // probes that will be made
  RankWindow ranked_;
  bool has_own_ = false;
  MatrixView centres_;
  DeviceArray<float> centre_memory_;
  DeviceArray<float> made_;         // rows as cells see them, a batch
  DeviceArray<int64_t> found_ids_;  // what a search of a batch finds
  DeviceArray<float> found_distances_;
  DeviceArray<uint32_t> own_;
  DeviceArray<uint32_t> ranks_;
  std::vector<int64_t> sizes_;
  std::vector<int64_t> ranked_sizes_;  // the rows in each cell whose probes are ranked
  std::optional<NearCells> near_;      // where these alone are ranked
};

}  // namespace kith
