// Joins the rows that are within a radius of each other, all of them, without comparing every pair: by k-means cells.
//
// Each row is in the cell of its nearest centre. For centres a and b, f(z) = |z - b|^2 - |z - a|^2 is linear with the
// slope 2 |a - b|, and at most 0 for the rows of b. So a row x of a can have a near row in b only where
// f(x) <= 2 r |a - b|: x is within r of the border of the two cells. Rows are compared with their own cell, and with the
// rows at the border of those other cells that they are near to. Of equal rows one is compared for all.
//
// Cost: rows * cells distances to the centres, and what is near in place of rows^2. Where the radius is wide for the
// spread of the rows, nearly all cells are near to all rows; that is noticed early. Memory: 60 bytes a row, and the rows of
// a cell with those near to it.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "graph/handle/row_sets.hpp"

#include <cstdint>

namespace kith {

struct NearPairs {
  float radius = 0;  // in the metric's unit, and included
  Metric metric = Metric::l2;
  uint64_t seed = 0;  // of the centres, which change the time alone
  int64_t many = 1 << 16;  // rows from which on cells are sooner than all pairs, where no more than half are equal to others
};

// Rows in host memory, all finite. False where comparing all pairs would be sooner, or has to be done since the metric has
// no cells, the values are too large, or the memory limit has no room. Then some rows may be joined already, all rightly.
bool join_in_cells(const MatrixView& x, const NearPairs& wanted, const RowSets& sets, const Resources& resources);

}  // namespace kith
