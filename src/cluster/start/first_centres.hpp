// Where k-means begins: centres given, drawn at random, or found by k-means++.
#pragma once

#include <kith/kmeans.hpp>

#include "cluster/steps/kmeans_backend.hpp"
#include "cluster/steps/kmeans_plan.hpp"
#include "rows/row_source.hpp"

#include <cstdint>

namespace kith {

// How k-means finds its first centres: a pure function of the parameters and the data's shape, so that it is the same
// on every device and under every memory limit.
//
//   all rows      greedy k-means++ over every row, where that is cheap: small clusters are not missed
//   oversampled   many centres: rounds of draws over every row leave a few candidates for each centre, and k-means++
//                 chooses among these (oversampled_start.hpp); no part of it is quadratic in the centres
//   a sample      k-means++ over rows drawn at random: few centres of large data, mini-batches, directions, and where
//                 init_points_per_centre says so
struct StartChoice {
  int64_t plus_plus_rows = 0;  // k-means++ goes over so many rows, all or a sample; 0: none of that
  int64_t candidates = 0;      // drawn in rounds over all rows; 0: none of that

  bool oversamples() const { return candidates > 0; }
};

StartChoice choose_start(const KMeansParams& params, int64_t rows, int64_t cols);

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
