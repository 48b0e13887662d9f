// k-means++ for many centres, at a cost that is not quadratic in them: within coarse cells.
//
// Greedy k-means++ over evenly spread rows gives the centres of up to 512 cells; every row belongs to the cell of the
// nearest. In each cell greedy k-means++ then chooses more centres than the cell's share and records the gain of each;
// the largest gains of all cells are the centres.
//
// All machines choose the same rows: cells are by canonical distance, and each has its own random numbers.
// Cost: 6 rows x centres x columns / cells x (trials for so few centres) operations, one cell per thread at a time.
// Memory: for each thread, its cell's rows and the memory of k-means++ for them.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/parallel_for.hpp"
#include "kernels/panels/panel_format.hpp"

#include <cstdint>
#include <vector>

namespace kith {

struct PlusPlusCells {
  MatrixView rows;                 // f32 on the host, one after the other
  const float* weights = nullptr;  // one for each, or none
  int64_t clusters = 0;            // no more than there are rows
  int64_t cells = 1;               // no more than clusters
  PanelFormat format = PanelFormat::f32;
  uint64_t seed = 0;
  uint64_t stream = 0;  // below 2^32: of the random numbers; cells use those above
};

// The least number of cells that limits the work to some seconds of a core: with fewer cells fewer clusters are cut in
// two. 1 if no cells are needed. A pure function of the shape.
int64_t plus_plus_cells(int64_t rows, int64_t cols, int64_t clusters);

// A centre that was chosen in a cell: by how much it lowers the potential, and its position among the cell's centres.
struct CellGain {
  double gain = 0;
  size_t cell = 0;
  size_t place = 0;
};

// The centres with the largest gains of all cells, cell by cell: `potentials` are those of each cell with its first
// centre, the first two, and so on; together at least as many as `clusters`. The first of every cell stays.
std::vector<CellGain> largest_gains(const std::vector<std::vector<double>>& potentials, int64_t clusters);

// Numbers of the chosen rows.
std::vector<uint32_t> choose_plus_plus_in_cells(const PlusPlusCells& from, ProgressMeter& meter,
                                                const Resources& resources);

}  // namespace kith
