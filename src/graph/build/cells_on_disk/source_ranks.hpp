// The cells of rows read from a source in batches: each row's own cell, which is the nearest, then the nearest others
// by (distance, cell), among all cells. A GPU searches centres kept in its memory (source_ranks_cuda.cpp), the CPU does so
// too for few cells of a row; for more it ranks values computed for all cells.
//
// Cost: rows x cells distances, twice if a row has different vectors as a row and as a query.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "graph/build/cells/cell_ranks_cpu.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace kith {

// What is ranked, and the number of probes.
struct CellRanking {
  int64_t cols = 0;
  DType dtype = DType::f32;
  MatrixView centres;  // f32, on the host
  Metric metric = Metric::l2;
  double longest = 0;  // squared norm of the longest row
  int64_t probes = 1;
};

class SourceRanks {
 public:
  // Up to so many cells of a row are found sooner by exact search, which rules most out: 3 of 11,508 in 0.64 of the time.
  static constexpr int64_t kFewWanted = 16;

  SourceRanks(const CellRanking& task, const Resources& resources);
  ~SourceRanks();
  SourceRanks(const SourceRanks&) = delete;
  SourceRanks& operator=(const SourceRanks&) = delete;

  // The most rows of a batch that are useful, and the memory of a batch.
  int64_t most_rows() const;
  Footprint footprint(int64_t rows) const;
  // Allocates memory for batches of up to that many rows.
  void take_memory(int64_t rows);
  // The number of rows to rank in one call, given the rows of a section.
  int64_t at_once(int64_t section) const;

  // Returns the probes of the first row, behind which lie those of the others. They stay until the next call but one, so
  // that they can be used beside the next.
  const uint32_t* rank(const MatrixView& rows);

  // The implementation on a GPU.
  class Device {
   public:
    virtual ~Device() = default;
    virtual void rank(const MatrixView& rows, uint32_t* probes) = 0;
  };

 private:
  void rank_on_cpu(const MatrixView& rows, uint32_t* all_probes);
  bool on_gpu() const { return resources_.device().kind == DeviceKind::cuda; }
  bool two_sides() const { return task_.metric == Metric::inner_product; }

  const CellRanking task_;
  const Resources resources_;
  const int64_t wanted_;
  std::optional<CellRanks> near_;  // on the CPU, if many cells are needed
  MatrixBuffer memory_;
  HostArray<uint32_t> found_[2];
  int turn_ = 0;  // of these, the one of the last call
  std::unique_ptr<Device> device_;
};

// `wanted`: number of cells searched for each row.
std::unique_ptr<SourceRanks::Device> make_source_ranks_cuda(const CellRanking& task, int64_t wanted, int64_t rows,
                                                            const Resources& resources);
Footprint source_ranks_footprint_cuda(const CellRanking& task, int64_t wanted, int64_t rows, const Resources& resources);

}  // namespace kith
