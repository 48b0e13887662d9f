#include "cluster/empty_clusters.hpp"
#include "cluster/kmeans_run.hpp"

#include <algorithm>

namespace kith {

double objective_of(const float* keys, const float* weights, int64_t rows) {
  constexpr int64_t kAtOnce = 4;  // blocks, which do not wait for each other
  const auto step = [&](int64_t i) {
    const auto key = static_cast<double>(keys[i]);
    return weights == nullptr ? key : static_cast<double>(weights[i]) * key;
  };
  double total = 0;
  int64_t first = 0;
  for (; first + kAtOnce * kSumBlock <= rows; first += kAtOnce * kSumBlock) {
    double sums[kAtOnce] = {};
    for (int64_t i = first; i < first + kSumBlock; ++i) {
      for (int64_t block = 0; block < kAtOnce; ++block) sums[block] += step(i + block * kSumBlock);
    }
    for (const double sum : sums) total += sum;
  }
  for (; first < rows; first += kSumBlock) {
    double sum = 0;
    for (int64_t i = first; i < std::min(first + kSumBlock, rows); ++i) sum += step(i);
    total += sum;
  }
  return total;
}

void run_pass(const KMeansRun& run, const KMeansPass& pass, KMeansOutcome& outcome) {
  run.backend.begin_pass(pass);
  run.backend.scan_all(run.source, run.plan.piece_rows, run.meter);
  outcome.objective = run.backend.objective();
}

void run_lloyd(const KMeansRun& run, KMeansOutcome& outcome) {
  KMeansBackend& backend = run.backend;
  backend.set_rows({run.shape.rows, outcome.labels, outcome.keys, run.weights});
  backend.set_centres(outcome.centres);
  // Without a history the last pass alone is scored, unless that is one which adds up.
  const bool scores = run.params.history || !run.params.compute_labels;
  bool labelled = false;  // labels are those of the centres,
  bool settled = false;   // and so is the objective
  for (int64_t i = 0; i < run.params.iterations && !labelled; ++i) {
    run_pass(run, {.adds_up = true, .scores = scores}, outcome);
    if (run.params.history) outcome.history.push_back(outcome.objective);
    ++outcome.iterations;
    std::copy_n(backend.weights(), run.shape.clusters, outcome.counts);
    if (!scores && has_empty_cluster(run, outcome)) run_pass(run, {.adds_up = true}, outcome);  // it wants the farthest
    const int64_t filled = fill_empty_clusters(run, outcome);
    const double moved = backend.move_to_means(outcome.centres);
    labelled = filled == 0 && moved == 0;
    settled = labelled && scores;
    if (moved <= run.tolerance) break;
  }
  backend.get_centres(outcome.centres);
  if (!run.params.compute_labels) return;
  if (!settled) run_pass(run, {.labels_known = labelled}, outcome);
  backend.get_labels();
  if (!settled) backend.get_counts(outcome.counts);
}

}  // namespace kith
