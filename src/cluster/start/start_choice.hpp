// How k-means finds its first centres: a pure function of the parameters and the data's shape, so that it is the same
// on every device and under every memory limit.
//
//   all rows      greedy k-means++ over every row, where that is cheap: small clusters are not missed
//   oversampled   many centres: rounds of draws over every row leave a few candidates for each centre, and k-means++
//                 chooses among these (oversampled_start.hpp); no part of it is quadratic in the centres
//   a sample      k-means++ over rows drawn at random: few centres of large data, mini-batches, directions, and where
//                 init_points_per_centre says so
#pragma once

#include <kith/kmeans.hpp>

#include <cstdint>

namespace kith {

struct StartChoice {
  int64_t plus_plus_rows = 0;  // k-means++ goes over so many rows, all or a sample; 0: none of that
  int64_t candidates = 0;      // drawn in rounds over all rows; 0: none of that

  bool oversamples() const { return candidates > 0; }
};

StartChoice choose_start(const KMeansParams& params, int64_t rows, int64_t cols);

}  // namespace kith
