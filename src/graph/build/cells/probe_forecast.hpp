// How many probes reach a recall, known before any pair is compared.
//
// After e probes two rows have been compared if either has the other's cell among its first e. The true neighbours of
// the control rows are known, so what these rows will have found after e probes follows from where a few cells come
// among the probes of a few rows. A row that ties with the last true neighbour counts as found too
// (control_ties.hpp).
//
// The forecast is what the control rows will show, exactly, where there are no such ties and all cells are ranked (up
// to kMostCellsRanked; else places are still counted among all). It is close in any case.
//
// Cost: (control rows x (1 + neighbours)) x cells distances; where there are ties, up to 262,144 rows x cells.
#pragma once

#include <kith/resources.hpp>

#include "graph/build/cells/control_ties.hpp"
#include "graph/lists/control_rows.hpp"

#include <cstdint>
#include <span>

namespace kith {

// At which place a cell comes among the probes of a row.
struct PlaceQuestion {
  uint32_t row;  // its number in the list of rows
  uint32_t cell;
};

// What a partition into cells can be asked, on its device.
class CellPlaces {
 public:
  virtual ~CellPlaces() = default;
  virtual int64_t cells() const = 0;
  // Each listed row's own cell.
  virtual void find_own(std::span<const uint32_t> rows, uint32_t* own) = 0;
  // Questions come by ascending row. A row's own cell, which is given, is at place 0, then come all others by
  // (distance, cell).
  virtual void find_places(std::span<const uint32_t> rows, std::span<const uint32_t> own,
                           std::span<const PlaceQuestion> questions, uint32_t* places) = 0;
};

// Probes of every row, at most all cells, with which every pair is compared. 0: nobody knows, since there are no cells
// yet or no control row, or memory is only counted.
struct ProbeForecast {
  int64_t needed = 0;       // the fewest that reach the recall
  int64_t for_descent = 0;  // the fewest that find four of five neighbours: from there on NN-Descent finds the rest
  double mean_near = 0;     // rows as near as the last neighbour of a control row
  bool crowded = false;     // not few control rows have more such rows than are looked at
};
ProbeForecast foresee_probes(double recall, const ControlRows& control, const ControlTies& ties, CellPlaces& places,
                             const Resources& resources);

}  // namespace kith
