// All distances between two sets of vectors, in the metric's unit: those that knn() reports, bit by bit.
//
// Every one is computed in float64: for the k nearest knn() is much faster. Memory: rows x cols of the result alone.
#pragma once

#include <kith/export.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

namespace kith {

struct PairwiseParams {
  Metric metric = Metric::l2;
  bool check_finite = true;  // refuse NaN and infinities, naming the row
};

// Row i, column j: the distance of x's row i and y's row j, as f32.
KITH_EXPORT MatrixBuffer pairwise_distances(const MatrixView& x, const MatrixView& y, const PairwiseParams& params = {},
                                            const Resources& resources = Resources());

// The same into the caller's f32 matrix.
KITH_EXPORT void pairwise_distances(const MatrixView& x, const MatrixView& y, const MutableMatrixView& out,
                                    const PairwiseParams& params, const Resources& resources = Resources());

}  // namespace kith
