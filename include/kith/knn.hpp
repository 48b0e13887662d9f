// Exact k-nearest-neighbour search: for every query the k rows of the base that are nearest by the metric.
//
// Exact means: the rows returned are the first k of all rows ordered by (distance, row), where a distance is computed
// in float64 from the stored values and rounded once to f32. Fast arithmetic only decides which rows cannot be among
// them. The same input gives the same bytes on every device, for any number of threads and under any memory limit.
//
// Queries, base and results may lie in host memory or, each for itself, in that of the CUDA device that searches. The
// call waits for the device and returns when the result is complete; where results lie on the device and
// resources.stream is set, when they are complete in the order of that stream. After an exception the caller's result
// arrays may hold anything.
#pragma once

#include <kith/export.hpp>
#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <functional>

namespace kith {

struct KnnParams {
  int64_t k = 10;
  Metric metric = Metric::l2;
  bool check_finite = true;  // refuse NaN and infinities, naming the row; without it a NaN distance comes last
  RowFilter filter = {};     // the rows that may be found; without one, all

  KITH_EXPORT void validate() const;
};

KITH_EXPORT Neighbors knn(const MatrixView& queries, const MatrixView& base, const KnnParams& params = {},
                          const Resources& resources = Resources());

// The same into the caller's arrays.
KITH_EXPORT void knn(const MatrixView& queries, const MatrixView& base, const NeighborsView& out,
                     const KnnParams& params, const Resources& resources = Resources());

// From files that may be larger than memory: both are read in pieces that fit the host memory limit. `sink` gets the
// results of consecutive queries, in order; what it is given lives until it returns.
using NeighborsSink = std::function<void(int64_t first_query, const NeighborsView& part)>;
KITH_EXPORT void knn(const VectorFile& queries, const VectorFile& base, const NeighborsSink& sink,
                     const KnnParams& params, const Resources& resources = Resources());

}  // namespace kith
