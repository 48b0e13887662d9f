// The input and the result of one run of k-means.
#pragma once

#include <kith/kmeans.hpp>
#include <kith/matrix_buffer.hpp>

#include "cluster/steps/kmeans_backend.hpp"
#include "cluster/steps/kmeans_plan.hpp"
#include "core/host_array.hpp"
#include "core/random.hpp"
#include "rows/narrowed_rows.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <vector>

namespace kith {

struct KMeansRun {
  const KMeansParams& params;
  const KMeansShape& shape;
  const KMeansPlan& plan;
  RowSource& source;
  const float* weights;  // one for each row, or null
  float* keys;           // of each row
  double tolerance;      // of the centres' squared moves
  KMeansBackend& backend;
  ProgressMeter& meter;
  const Resources& resources;

  // The random numbers of one purpose in one of the n_init runs.
  enum class Purpose : uint64_t { sample, choose, batches };
  static uint64_t stream(int64_t attempt, Purpose purpose) {
    return 1 + static_cast<uint64_t>(attempt) * 4 + static_cast<uint64_t>(purpose);
  }
  static CounterRng random(uint64_t seed, int64_t attempt, Purpose purpose) { return {seed, stream(attempt, purpose)}; }
};

// The result of a run. When a run begins, `centres` holds the first centres.
struct KMeansModel {
  MatrixBuffer centres;
  HostArray<double> counts;   // the weight of each centre's rows
  HostArray<int32_t> labels;  // of each row
  double objective = 0;
  std::vector<double> history;
  int64_t iterations = 0;
  Offset offset = {};  // what rows and centres have lost
};

// The sum of weight x key, in blocks of kSumBlock rows whose sums are added in order.
double objective_of(const float* keys, const float* weights, int64_t rows);

// One pass of the backend over all rows. Sets the objective.
void run_pass(const KMeansRun& run, const KMeansPass& pass, KMeansModel& model);

// Lloyd's algorithm.
void run_lloyd(const KMeansRun& run, KMeansModel& model);

// Mini-batches of params.batch_size rows, drawn at random: `iterations` times as many as make up the data.
void run_mini_batches(const KMeansRun& run, int64_t attempt, KMeansModel& model);

}  // namespace kith
