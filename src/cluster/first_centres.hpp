// Where k-means begins: centres given, drawn at random, or drawn by k-means++ from a sample.
#pragma once

#include <kith/kmeans.hpp>

#include "cluster/kmeans_plan.hpp"
#include "rows/row_source.hpp"

namespace kith {

// How many rows are kept as f32 to choose from.
int64_t rows_to_choose_from(const KMeansParams& params, int64_t rows);

struct FirstCentresInput {
  RowSource& source;
  int64_t cols;
  const float* weights;  // or null
  const MatrixView& given;
};

// Fills `centres`, of length 1 for spherical. k-means++ works where the plan says.
void choose_first_centres(const KMeansParams& params, const KMeansPlan& plan, const FirstCentresInput& input,
                          int64_t attempt, const MutableMatrixView& centres, const Resources& resources);

}  // namespace kith
