// One wave of a graph by cells: what a backend does; the loop around it (cells.cpp) is the same for all.
//
// A wave compares every row with all rows of the cells of some of its probes, and offers every compared pair to both its
// rows. What lists hold afterwards is the first of all that was ever offered, whatever the order.
#pragma once

#include <kith/resources.hpp>

#include "core/parallel_for.hpp"
#include "graph/build/cells/cell_partition.hpp"
#include "graph/lists/graph_lists_cpu.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class CellSteps {
 public:
  virtual ~CellSteps() = default;
  // That every row can make.
  virtual int64_t probes() const = 0;
  // So many probes are likely to be made: a hint, which changes nothing that comes out.
  virtual void expect(int64_t) {}
  // Takes what waves of up to so many probes take at most, for who counts memory.
  virtual void count_waves(int64_t) {}
  // Probes first .. end - 1 of every row; first 0 is the own cell, which comes alone. Returns the pairs compared.
  virtual int64_t wave(int64_t first, int64_t end, ProgressMeter& meter) = 0;
};

// Cuts the rows into cells; the waves write the lists. What is given must outlive it.
std::unique_ptr<CellSteps> make_cell_steps_cpu(const PairRows& rows, const CellParams& params, WorkingLists& lists,
                                               const Resources& resources);
// `keeps_order`: leaves the order of the cells to the builder that follows.
std::unique_ptr<CellSteps> make_cell_steps_cpu(GraphListsCpu& lists, const CellParams& params, bool keeps_order);
// The lists lie on a GPU. Where the metric is no product, the CPU compares.
std::unique_ptr<CellSteps> make_cell_steps_cuda(GraphLists& lists, const CellParams& params);

}  // namespace kith
