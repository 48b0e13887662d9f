// What one run of k-means works with, and what it leaves.
#pragma once

#include <kith/kmeans.hpp>

#include "cluster/steps/kmeans_backend.hpp"
#include "cluster/steps/kmeans_plan.hpp"
#include "core/random.hpp"
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

// The arrays are the caller's; centres hold the first centres when a run begins.
struct KMeansOutcome {
  MutableMatrixView centres;
  double* counts = nullptr;   // the weight of each centre's rows
  int32_t* labels = nullptr;  // of each row
  float* keys = nullptr;
  double objective = 0;
  std::vector<double> history;
  int64_t iterations = 0;
};

// The sum of weight x key, in blocks of kSumBlock rows whose sums are added in order.
double objective_of(const float* keys, const float* weights, int64_t rows);

// One pass of the backend over all rows. Sets the objective.
void run_pass(const KMeansRun& run, const KMeansPass& pass, KMeansOutcome& outcome);

// Lloyd's algorithm.
void run_lloyd(const KMeansRun& run, KMeansOutcome& outcome);

// Mini-batches of params.batch_size rows, drawn at random: `iterations` times as many as make up the data.
void run_mini_batches(const KMeansRun& run, int64_t attempt, KMeansOutcome& outcome);

}  // namespace kith
