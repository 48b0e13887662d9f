// The first centres of k-means: given, drawn at random, or chosen by k-means++.
#pragma once

#include <kith/kmeans.hpp>
#include <kith/matrix_buffer.hpp>

#include "cluster/steps/kmeans_backend.hpp"
#include "cluster/steps/kmeans_plan.hpp"
#include "core/random.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// How k-means finds its first centres: a pure function of the parameters and the data's shape, so that it is the same
// on every device and under every memory limit.
//
//   all rows      greedy k-means++ over every row, where that is cheap: small clusters are not missed
//   oversampled   many centres: rounds of draws over every row leave a few candidates for each centre, and k-means++
//                 chooses among these (draw_candidates); no part of it is quadratic in the centres
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

// Fills `centres`, of length 1 for spherical. k-means++ runs on the planned device.
void choose_first_centres(const KMeansParams& params, const KMeansPlan& plan, const FirstCentresInput& input,
                          int64_t attempt, const MutableMatrixView& centres, const Resources& resources);

// First centres where there are many: k-means|| (Bahmani et al. 2012) in growing rounds, then k-means++ in cells.
//
// Rounds: each draws some of all rows at once, in proportion to their squared distance to the candidates so far, and
// adds them to the candidates: three times the current number, at most one for each centre, until there are four for
// each centre. Every row takes part, so that a small distant cluster is not missed. A candidate's weight is that of the
// rows nearest to it. If there are no more rows than candidates, all rows are candidates.
//
// Centres are chosen among the candidates by greedy k-means++; where these are many, within coarse cells of them
// (plus_plus_in_cells.hpp).
//
// All devices choose the same: distances are canonical, draws have a fixed order, random numbers are counter-based.
// Cost: as much as some four iterations of Lloyd's, in about 3 + log4(centres) passes over the rows, and k-means++.
// Memory: 8 bytes a row, 4 x 4 bytes a column and centre, and k-means++.
struct OversampledInput {
  RowSource& source;
  KMeansBackend& backend;  // of squared distances, to as many centres as are wanted
  KMeansRowArrays rows;    // the backend's while candidates are drawn
  int64_t piece_rows = 0;
  int64_t clusters = 0;
  int64_t candidates = 0;
};

struct Candidates {
  MatrixBuffer values;  // f32, one after the other
  int64_t count = 0;
  std::vector<float> weights;  // or empty: all weigh the same

  MatrixView rows() const { return values.view().slice(0, count); }
};

// `draws` are the random numbers of the rounds.
Candidates draw_candidates(const OversampledInput& input, const CounterRng& draws, ProgressMeter& meter,
                           const Resources& resources);

}  // namespace kith
