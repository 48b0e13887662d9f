// Forecasts how many probes reach a recall, before any pair is compared.
//
// After e probes two rows have been compared if either has the other's cell among its first e probes. The true
// neighbours of the control rows are known, so their recall after e probes follows from the ranks of a few cells among
// the probes of a few rows. A row that ties with the last true neighbour counts as found too (control_ties.hpp).
//
// Without such ties, and if all cells are ranked (up to kMostCellsRanked; with more, ranks are still counted among
// all), the forecast is exactly what the control rows will measure. Otherwise it is close.
//
// Cost: control rows x (1 + neighbours) x cells distances; with ties, up to 262,144 rows x cells.
#pragma once

#include <kith/resources.hpp>

#include "graph/build/cells/control_ties.hpp"
#include "graph/lists/control_rows.hpp"

#include <cstdint>
#include <span>

namespace kith {

// A question: the rank of a cell among the probes of a row.
struct PlaceQuestion {
  uint32_t row;  // its number in the list of rows
  uint32_t cell;
};

// What a partition into cells answers, on its device.
class CellPlaces {
 public:
  virtual ~CellPlaces() = default;
  virtual int64_t cells() const = 0;
  // Each listed row's own cell.
  virtual void find_own(std::span<const uint32_t> rows, uint32_t* own) = 0;
  // Questions are sorted by row. A row's own cell, which is given, has rank 0, then come all others by
  // (distance, cell).
  virtual void find_places(std::span<const uint32_t> rows, std::span<const uint32_t> own,
                           std::span<const PlaceQuestion> questions, uint32_t* places) = 0;
};

// Probes per row; with all cells every pair is compared. 0: unknown, because there are no cells yet or no control rows,
// or because memory is only counted.
struct ProbeForecast {
  int64_t needed = 0;       // the fewest that reach the recall
  int64_t for_descent = 0;  // the fewest that find four of five neighbours, enough for NN-Descent to find the others
  double mean_near = 0;     // mean number of rows as near as a control row's last neighbour
  bool crowded = false;     // a considerable share of the control rows has more ties than are collected
};
ProbeForecast foresee_probes(double recall, const ControlRows& control, const ControlTies& ties, CellPlaces& places,
                             const Resources& resources);

}  // namespace kith
