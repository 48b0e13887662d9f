// All distances between two sets of vectors, in the metric's unit, with the bits that knn() reports.
//
// All are computed in float64; to find the k nearest, knn() is much faster. Memory: the result, and on a GPU a tile of
// up to 64 MiB. x, y and the result may each be in host memory or in that of the CUDA device that computes; the result
// is complete when the call returns.
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

// Row i, column j: the distance between row i of x and row j of y, as f32.
KITH_EXPORT MatrixBuffer pairwise_distances(const MatrixView& x, const MatrixView& y, const PairwiseParams& params = {},
                                            const Resources& resources = Resources());

// The same into the caller's f32 matrix.
KITH_EXPORT void pairwise_distances(const MatrixView& x, const MatrixView& y, const MutableMatrixView& out,
                                    const PairwiseParams& params, const Resources& resources = Resources());

}  // namespace kith
