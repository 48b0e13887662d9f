#include "cluster/centre_means.hpp"
#include "cluster/empty_clusters.hpp"
#include "cluster/kmeans_run.hpp"

#include <algorithm>

namespace kith {

double objective_of(const float* keys, const float* weights, int64_t rows) {
  double total = 0;
  for (int64_t first = 0; first < rows; first += kSumBlock) {
    double sum = 0;
    for (int64_t i = first; i < std::min(first + kSumBlock, rows); ++i) {
      const auto key = static_cast<double>(keys[i]);
      sum += weights == nullptr ? key : static_cast<double>(weights[i]) * key;
    }
    total += sum;
  }
  return total;
}

void assign_all(const KMeansRun& run, KMeansOutcome& outcome) {
  run.backend.set_centres(outcome.centres);
  for_each_piece(run, [&](const MatrixView& rows, int64_t first) {
    run.backend.assign(rows, outcome.labels + first, outcome.keys + first, run.meter);
  });
  outcome.objective = objective_of(outcome.keys, run.weights, run.problem.rows);
}

void run_lloyd(const KMeansRun& run, KMeansOutcome& outcome) {
  bool settled = false;  // labels and objective are those of the centres
  for (int64_t i = 0; i < run.params.iterations && !settled; ++i) {
    run.backend.set_centres(outcome.centres);
    run.backend.clear_sums();
    for_each_piece(run, [&](const MatrixView& rows, int64_t first) {
      int32_t* const labels = outcome.labels + first;
      run.backend.assign(rows, labels, outcome.keys + first, run.meter);
      run.backend.add(rows, labels, run.weights == nullptr ? nullptr : run.weights + first, run.meter);
    });
    outcome.objective = objective_of(outcome.keys, run.weights, run.problem.rows);
    outcome.history.push_back(outcome.objective);
    ++outcome.iterations;
    const SumsView sums = run.backend.sums();
    std::copy_n(sums.weights, run.problem.clusters, outcome.counts);
    const int64_t filled = fill_empty_clusters(run, outcome, sums);
    const double moved = move_to_means(sums, outcome.centres, run.params.spherical);
    settled = filled == 0 && moved == 0;
    if (moved <= run.tolerance) break;
  }
  if (!run.params.compute_labels || settled) return;
  assign_all(run, outcome);
  std::fill_n(outcome.counts, run.problem.clusters, 0.0);
  for (int64_t i = 0; i < run.problem.rows; ++i) {
    outcome.counts[outcome.labels[i]] += run.weights == nullptr ? 1.0 : static_cast<double>(run.weights[i]);
  }
}

}  // namespace kith
