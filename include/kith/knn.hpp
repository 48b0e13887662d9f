// Exact k-nearest-neighbour search: for every query the k nearest rows of the base.
//
// The result is the first k of all rows by (distance, row), where a distance is computed in float64 from
// the stored values and rounded once to f32. Faster arithmetic is used only to rule rows out. The same
// input gives the same bytes on every device, for any number of threads and any memory limit.
//
// Queries, base and results may each be in host memory or in that of the CUDA device that searches. The
// call returns when the result is complete; if results are on the device and resources.stream is set,
// complete in the order of that stream. If it throws, the contents of the caller's result arrays are
// undefined.
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
  bool check_finite = true;  // refuse NaN and infinities, naming the row; off, NaN distances come last
  RowFilter filter = {};     // the rows that may be found; default: all

  KITH_EXPORT void validate() const;
};

// What knn() refuses whatever the rows' values are: parameters, dtypes, columns, more results than any memory holds. For
// callers that make room for results before they search.
KITH_EXPORT void check_knn(const MatrixView& queries, const MatrixView& base, const KnnParams& params);
KITH_EXPORT void check_knn(const VectorFile& queries, const VectorFile& base, const KnnParams& params);
// The number of results alone.
KITH_EXPORT void check_result_size(int64_t queries, int64_t k);

KITH_EXPORT Neighbors knn(const MatrixView& queries, const MatrixView& base, const KnnParams& params = {},
                          const Resources& resources = Resources());

// The same into the caller's arrays.
KITH_EXPORT void knn(const MatrixView& queries, const MatrixView& base, const NeighborsView& out,
                     const KnnParams& params, const Resources& resources = Resources());

// From files that may be larger than memory; both are read in pieces that fit the host memory limit. `sink` receives
// the results of consecutive queries, in order, valid until it returns.
using NeighborsSink = std::function<void(int64_t first_query, const NeighborsView& part)>;
KITH_EXPORT void knn(const VectorFile& queries, const VectorFile& base, const NeighborsSink& sink,
                     const KnnParams& params, const Resources& resources = Resources());

}  // namespace kith
