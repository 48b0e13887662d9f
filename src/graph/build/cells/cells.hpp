// A k-NN graph by cells (section 6.5 of "Billion-scale similarity search with GPUs", without compression): rows are cut
// into k-means cells, a row is compared with all rows of the cells nearest to it, and every compared pair is offered to
// both its rows. How many probes the recall needs is known beforehand (probe_forecast.hpp); they are made in waves,
// nearest first.
//
// What comes out is defined without its arithmetic: the first of each row, by (key, row), among the rows of its probed
// cells and the rows whose probed cells hold it. The error bounds of the products decide every compared pair.
//
// Cost: rows x (cells for every 128 probes + probes x rows of a cell) distances.
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

// One wave: what a backend does; the loop around it is the same for all. A wave compares every row with all rows of the cells
// of some of its probes, and offers every compared pair to both its rows. What lists hold afterwards is the first of all that
// was ever offered, whatever the order.
class CellSteps {
 public:
  virtual ~CellSteps() = default;
  // Nearest cells that every row can be compared with.
  virtual int64_t probes() const = 0;
  // Until cells are learned, the forecast knows ties alone.
  virtual const ProbeForecast& forecast() const = 0;
  // Learns the cells' centres, by which probes are foreseen; then assigns every row to its cell, which all below needs.
  // May be called again. The CPU does both when it is made.
  virtual void learn() {}
  virtual void cut() {}
  // The pairs that so many probes of every row compare, estimated where not all are ranked.
  virtual int64_t pairs(int64_t probes) const = 0;
  // When the work on it began.
  std::chrono::steady_clock::time_point began() const { return began_; }
  // How much is left to keys because fast products tell little of the rows, from 0 to 1. Until they are cut, of the
  // control rows.
  virtual double blur() const { return 0; }
  // Takes what waves of up to so many probes take at most, for who counts memory.
  virtual void count_waves(int64_t) {}
  // Probes first .. end - 1 of every row, or of each rank's rows; first 0 is the own cell, which comes alone. Returns the pairs compared.
  virtual int64_t wave(int64_t first, int64_t end, ProgressMeter& meter) = 0;

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// Cells of the rows; the waves write the lists, which must outlive it.
std::unique_ptr<CellSteps> make_cell_steps_cpu(GraphListsCpu& lists, const CellsWish& wish);
// The lists lie on a GPU. Where the metric is no product, the CPU compares.
std::unique_ptr<CellSteps> make_cell_steps_cuda(GraphLists& lists, const CellsWish& wish);
// Either.
std::unique_ptr<CellSteps> make_cell_steps(GraphLists& lists, const CellsWish& wish);

// Fills the lists, which are empty: with as many probes as the recall needs, those of the wish
// at most.
BuildOutcome run_cells(CellSteps& steps, GraphLists& lists, const CellsWish& wish, const Resources& resources);

}  // namespace kith
