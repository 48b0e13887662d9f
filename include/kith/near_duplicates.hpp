// Groups of near duplicates: rows that are connected by steps of at most a radius.
//
// The k-NN graph of the rows contains nearly all of these steps, and takes a small part of the time of a range search
// for every row (docs/near-duplicates.md). `exact` misses none: on CPUs by k-means cells, whose borders rule out most
// pairs, or, for fewer rows and where that rules out too little, by the ranges of all rows. On GPUs the exact graph is
// built first, then the ranges of those rows whose k neighbours are all within the radius, since they may have more.
//
// Memory: the graph, 12 k bytes a row, while it runs, or 60 bytes a row for cells; 8 bytes a row of labels. `exact`:
// also a block of range results.
#pragma once

#include <kith/export.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/row_labels.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith {

struct NearDuplicateParams {
  float radius = 0;  // inclusive, in the metric's unit
  Metric metric = Metric::l2;
  bool exact = false;
  int64_t k = 10;         // neighbours of each row in the graph
  double recall = 0.99;   // of the graph, unless exact
  uint64_t seed = 0;
  bool check_finite = true;

  KITH_EXPORT void validate() const;
};

// The group of each row; a row without near duplicates is a group of its own. InvalidArgument for inner_product, which
// is not a distance.
KITH_EXPORT RowLabels near_duplicates(const MatrixView& x, const NearDuplicateParams& params,
                                      const Resources& resources = Resources());

}  // namespace kith
