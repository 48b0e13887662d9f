// Near duplicates: rows that are joined by steps of at most a radius, in groups.
//
// The k-NN graph of the rows has nearly all such steps, and is built in a small part of the time of a search of all ranges
// (docs/near-duplicates.md). `exact` finds all: on CPUs by k-means cells, whose borders rule out most pairs, or, of fewer
// rows and where that rules out too little, by the ranges of all rows. On GPUs the exact graph comes first, then the ranges of
// the rows that have all their neighbours within the radius, for those may have more.
//
// Memory: the graph, 12 k bytes a row, while it runs, or 60 bytes a row for cells; 8 bytes a row of labels. Exact: a block of
// ranges beside them.
#pragma once

#include <kith/export.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/row_labels.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith {

struct NearDuplicateParams {
  float radius = 0;  // in the metric's unit, and included
  Metric metric = Metric::l2;
  bool exact = false;
  int64_t k = 10;         // neighbours of each row in the graph
  double recall = 0.99;   // of the graph, where not exact
  uint64_t seed = 0;
  bool check_finite = true;

  KITH_EXPORT void validate() const;
};

// The group of each row: a row without near duplicates is one by itself. Throws InvalidArgument for inner_product, which
// is no distance.
KITH_EXPORT RowLabels near_duplicates(const MatrixView& x, const NearDuplicateParams& params,
                                      const Resources& resources = Resources());

}  // namespace kith
