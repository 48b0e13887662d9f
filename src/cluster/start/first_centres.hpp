// Where k-means begins: centres given, drawn at random, or found by k-means++ in one of the ways of start_choice.hpp.
#pragma once

#include <kith/kmeans.hpp>

#include "cluster/start/start_choice.hpp"
#include "cluster/steps/kmeans_backend.hpp"
#include "cluster/steps/kmeans_plan.hpp"
#include "rows/row_source.hpp"

namespace kith {

struct FirstCentresInput {
  RowSource& source;
  const MatrixView& given;
  KMeansRowArrays rows;              // labels and keys may be written
  KMeansBackend* backend = nullptr;  // where candidates are drawn in rounds
};

// Fills `centres`, of length 1 for spherical. k-means++ works where the plan says.
void choose_first_centres(const KMeansParams& params, const KMeansPlan& plan, const FirstCentresInput& input,
                          int64_t attempt, const MutableMatrixView& centres, const Resources& resources);

}  // namespace kith
