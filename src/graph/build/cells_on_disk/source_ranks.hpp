// The cells of rows that are read from a source, a batch at a time: each row's own cell, which is the nearest, then the
// nearest others by (distance, cell), of all cells. A GPU searches centres that stay there (source_ranks_cuda.cpp); the CPU
// ranks values that it has computed of all cells.
//
// Cost: rows x cells distances, twice where a row looks for others with another vector than it is found by.
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

// What is ranked, and how many probes are wanted.
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
  SourceRanks(const CellRanking& task, const Resources& resources);
  ~SourceRanks();
  SourceRanks(const SourceRanks&) = delete;
  SourceRanks& operator=(const SourceRanks&) = delete;

  // The most rows that are worth a batch; what a batch takes.
  int64_t most_rows() const;
  Footprint footprint(int64_t rows) const;
  // For batches of up to so many rows.
  void take_memory(int64_t rows);
  // The rows that should be ranked in one call, where sections have so many.
  int64_t at_once(int64_t section) const;

  void rank(const MatrixView& rows);
  // The probes of the rows that were ranked last.
  const uint32_t* probes(int64_t row) const { return found_.data() + row * task_.probes; }

  // On a GPU.
  class Device {
   public:
    virtual ~Device() = default;
    virtual void rank(const MatrixView& rows, uint32_t* probes) = 0;
  };

 private:
  bool on_gpu() const { return resources_.device().kind == DeviceKind::cuda; }
  bool two_sides() const { return task_.metric == Metric::inner_product; }

  const CellRanking task_;
  const Resources resources_;
  const int64_t wanted_;
  std::optional<CellRanks> near_;  // on the CPU, where more than the nearest is wanted
  MatrixBuffer memory_;
  HostArray<uint32_t> found_;
  std::unique_ptr<Device> device_;
};

// `wanted`: cells that are searched for each row.
std::unique_ptr<SourceRanks::Device> make_source_ranks_cuda(const CellRanking& task, int64_t wanted, int64_t rows,
                                                            const Resources& resources);
Footprint source_ranks_footprint_cuda(const CellRanking& task, int64_t wanted, int64_t rows, const Resources& resources);

}  // namespace kith
