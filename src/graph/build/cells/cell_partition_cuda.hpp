// A partition of a collection into k-means cells on a GPU (cell_partition.hpp), with the same cells and probes as on
// the CPU.
//
// When parts of one process build one graph (graph_share.hpp), the first trains the centres and forecasts the probes;
// each assigns and ranks the rows of its share, and has the cells of all rows.
//
// Time: rows x cells products per ranking, and once more if a row's query vector differs from its stored one. Memory:
// 4 (ranked probes + 1) bytes per row.
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

// For very many cells: the cells whose centres are nearest to each cell's, and each cell's rows, so that rows rank only
// those cells. Memory: 4 kCellsRanked bytes per cell, 8 per row.
class NearCells {
 public:
  // Lists these rows. `own`: each row's cell; `sizes`: the number of rows per cell.
  NearCells(const MatrixView& centres, const uint32_t* own, const std::vector<int64_t>& sizes, const RankPart& rows,
            std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // How many near cells each cell has.
  int64_t count() const { return count_; }
  // The near cells of each cell, cell by cell, in ascending order, so that ties go to the smaller cell.
  const uint32_t* numbers(int64_t cell) const { return numbers_.data() + cell * count_; }
  // These rows, cell by cell.
  const uint32_t* members() const { return members_.data(); }

 private:
  int64_t count_;
  DeviceArray<uint32_t> numbers_;
  DeviceArray<uint32_t> members_;
};

class CellPartitionCuda final : public CellPlaces {
 public:
  // For a requested recall, forecasts the number of probes from the control rows and their ties, which must then be
  // given. `share`: among several parts; null: there are no others.
  CellPartitionCuda(const GraphRowsCuda& rows, const CellsParams& params, const ControlRows& control,
                    const ControlTies* ties, const GraphShare* share, std::shared_ptr<const DeviceContext> context,
                    const Resources& resources);

  int64_t cells() const override { return cells_; }
  const ProbeForecast& forecast() const { return forecast_; }
  // Each row's own cell.
  const uint32_t* own() const { return own_.data(); }
  // Rows in each cell.
  const std::vector<int64_t>& sizes() const { return sizes_; }

  const RankWindow& ranked() const { return ranked_; }
  // Ranks the window, replacing the previous one.
  void rank(const RankWindow& window);
  RankWindow window_from(int64_t first, int64_t end) const { return rank_window(first, end, likely_, own_.size()); }
  // The rows whose probes are ranked: all, or this part's.
  const RankPart& ranked_rows() const { return ranked_rows_; }
  // The cells of their probes first .. end - 1, which must be ranked.
  CellColumns columns(int64_t first, int64_t end) const {
    return {ranks_.data(),           ranked_.count,      ranked_rows_.count, first - ranked_.first,
            end - ranked_.first, ranked_rows_.first};
  }
  // Estimates the pairs that this many probes per row compare (pairs_by_probes), from the ranked ones.
  int64_t pairs(int64_t probes) const;

  void find_own(std::span<const uint32_t> rows, uint32_t* own) override;
  void find_places(std::span<const uint32_t> rows, std::span<const uint32_t> own,
                   std::span<const PlaceQuestion> questions, uint32_t* places) override;

 private:
  bool ranks_all() const { return cells_ <= kMostCellsRanked; }
  int64_t wanted_for(int64_t probes) const;
  int64_t batch_for(int64_t wanted) const;
  void learn_centres(const CellsParams& params);
  std::optional<KMeans> learn_from_sample(const CellsParams& params) const;
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
  int64_t likely_;  // expected number of probes
  RankWindow ranked_;
  bool has_own_ = false;
  MatrixView centres_;
  DeviceArray<float> centre_memory_;
  DeviceArray<float> made_;         // a batch of rows in cell space
  DeviceArray<int64_t> found_ids_;  // the search results of a batch
  DeviceArray<float> found_distances_;
  DeviceArray<uint32_t> own_;
  DeviceArray<uint32_t> ranks_;
  std::vector<int64_t> sizes_;
  std::vector<int64_t> ranked_sizes_;  // per cell: its rows whose probes are ranked
  std::optional<NearCells> near_;      // if only near cells are ranked
};

}  // namespace kith
