// The probes of rows stored cell by cell, if there are so many cells that a row only ranks kCellsRanked of them: those
// with centres nearest to its own cell's (cell_partition.hpp).
//
// Cost: for each cell its distances to all others, and kCellsRanked distances per row.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "graph/build/cells_on_disk/source_ranks.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class NearRanks {
 public:
  // Consecutive rows of a cell.
  struct Run {
    uint32_t cell = 0;
    int64_t rows = 0;
  };

  NearRanks(const CellRanking& task, const Resources& resources);
  ~NearRanks();
  NearRanks(const NearRanks&) = delete;
  NearRanks& operator=(const NearRanks&) = delete;

  // The memory of a batch of that many rows.
  Footprint footprint(int64_t rows) const;
  void take_memory(int64_t rows);

  // Ranks rows, run by run.
  void rank(const MatrixView& rows, const std::vector<Run>& runs);
  const uint32_t* probes(int64_t row) const { return found_.data() + row * task_.probes; }

  // The implementation on a GPU.
  class Device {
   public:
    virtual ~Device() = default;
    virtual void rank(const MatrixView& rows, const std::vector<Run>& runs, uint32_t* probes) = 0;
  };

 private:
  bool on_gpu() const { return resources_.device().kind == DeviceKind::cuda; }
  int64_t among() const;
  void rank_cell(const MatrixView& rows, const Run& run, uint32_t* probes);

  const CellRanking task_;
  const Resources resources_;
  MatrixBuffer chosen_;  // centres near a cell
  MatrixBuffer memory_;  // the rows' vectors as queries
  HostArray<uint32_t> found_;
  std::unique_ptr<Device> device_;
};

std::unique_ptr<NearRanks::Device> make_near_ranks_cuda(const CellRanking& task, int64_t rows,
                                                        const Resources& resources);
Footprint near_ranks_footprint_cuda(const CellRanking& task, int64_t rows, const Resources& resources);

}  // namespace kith
