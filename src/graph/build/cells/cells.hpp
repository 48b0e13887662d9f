// A k-NN graph by cells (section 6.5 of "Billion-scale similarity search with GPUs", without compression): rows are cut
// into k-means cells, a row is compared with all rows of the cells nearest to it, and every compared pair is offered to
// both its rows. Probes come in waves, nearest first, until the recall that is wanted is reached.
//
// What comes out is defined without its arithmetic: the first of each row, by (key, row), among the rows of its probed
// cells and the rows whose probed cells hold it. The error bounds of the products decide every compared pair.
//
// Cost: rows x (cells + probes x rows of a cell) distances.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "graph/build/cells/cell_steps.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/lists/control_rows.hpp"
#include "graph/lists/graph_lists.hpp"
#include "graph/lists/pairs/pair_rows.hpp"
#include "graph/lists/working_lists.hpp"

#include <cstdint>
#include <optional>

namespace kith {

struct CellsWish {
  Metric metric = Metric::l2;
  int64_t k = 15;
  int64_t cells = 1;
  int64_t probes = 1;             // at most
  int64_t likely = 0;             // probes that will do: a hint
  std::optional<double> recall = {};   // stops the waves; none: all probes are made
  uint64_t seed = 0;
  bool gives_up = false;     // stops where what is missing will not be found within the probes
  bool keeps_order = false;  // rounds of NN-Descent follow
};

// Probes after which the recall is reached, if what is missing falls on as it fell from one probe to another: as
// exp(-c sqrt(probes)), which is how it fell on SIFT, GloVe, a mixture and a manifold. Infinite where it does not fall.
double probes_needed(double first_probe, double first_missing, double probe, double missing, double wanted_missing);

// Fills the lists, which are empty.
BuildOutcome build_by_cells(GraphLists& lists, const CellsWish& wish, const Resources& resources);
// The same on the CPU. `control` estimates the recall; none: nothing is estimated.
BuildOutcome build_by_cells(const PairRows& rows, const CellsWish& wish, const ControlRows* control,
                            WorkingLists& lists, const Resources& resources);

}  // namespace kith
