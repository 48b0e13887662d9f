// Builds a k-NN graph by cells (section 6.5 of "Billion-scale similarity search with GPUs", without compression): rows
// are partitioned into k-means cells, each row is compared with all rows of the cells nearest to it, and every compared
// pair is offered to both rows. The number of probes that the recall needs is forecast (probe_forecast.hpp); probes are
// made in waves, nearest first.
//
// The result is defined independently of arithmetic: for each row the first by (key, row) among the rows of its probed
// cells and the rows whose probed cells contain it. Products only exclude pairs that their error bounds decide.
//
// Cost: rows x (cells per 128 probes + probes x rows per cell) distances.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include "core/parallel_for.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/probe_forecast.hpp"
#include "graph/lists/graph_lists_cpu.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace kith {

// The backend's part: one wave. The loop around waves is shared. A wave compares every row with all rows of the cells
// of a range of its probes, and offers every compared pair to both rows. Lists keep the first of all offers ever made,
// in whatever order they came.
class CellSteps {
 public:
  virtual ~CellSteps() = default;
  // The most probes per row.
  virtual int64_t probes() const = 0;
  // The forecast; before cells are trained it has only ties.
  virtual const ProbeForecast& forecast() const = 0;
  // Trains the cells' centres, which the forecast needs; then assigns every row to its cell, which the calls below
  // need. May be called again. The CPU backend does both in its constructor.
  virtual void learn() {}
  virtual void cut() {}
  // The pairs that this many probes per row compare; estimated unless all are ranked.
  virtual int64_t pairs(int64_t probes) const = 0;
  // When work began.
  std::chrono::steady_clock::time_point began() const { return began_; }
  // The share of pairs that need keys because products exclude too few, from 0 to 1. Before the partition, that of the
  // control rows.
  virtual double blur() const { return 0; }
  // Allocates what waves of up to this many probes need at most, to count memory.
  virtual void count_waves(int64_t) {}
  // Probes first .. end - 1 of every row, or of each rank's rows; first 0 is the own cell, which comes alone. Returns
  // the pairs compared.
  virtual int64_t wave(int64_t first, int64_t end, ProgressMeter& meter) = 0;

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// CPU backend. Waves write the lists, which must outlive it.
std::unique_ptr<CellSteps> make_cell_steps_cpu(GraphListsCpu& lists, const CellsParams& params);
// GPU backend, with lists on the GPU. Metrics that are no products are compared on the CPU.
std::unique_ptr<CellSteps> make_cell_steps_cuda(GraphLists& lists, const CellsParams& params);
// The backend for the device.
std::unique_ptr<CellSteps> make_cell_steps(GraphLists& lists, const CellsParams& params);

// Fills the empty lists with as many probes as the recall needs, at most those of the
// parameters.
BuildOutcome run_cells(CellSteps& steps, GraphLists& lists, const CellsParams& params, const Resources& resources);

}  // namespace kith
