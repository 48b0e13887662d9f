#include "cluster/steps/centre_means.hpp"
#include "cluster/steps/kmeans_run.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"

#include <algorithm>

namespace kith {

// Rows are drawn with replacement and taken in the order of their numbers, which reads a file from front to back.
void run_mini_batches(const KMeansRun& run, int64_t attempt, KMeansModel& model) {
  KMeansBackend& backend = run.backend;
  const int64_t n = run.shape.rows;
  const int64_t batch = std::min(run.params.batch_size, n);
  const CounterRng rng = KMeansRun::random(run.params.seed, attempt, KMeansRun::Purpose::batches);
  const HostArray<int32_t> labels(batch, "a mini-batch", run.resources);
  const HostArray<float> keys(batch, "a mini-batch", run.resources);
  const HostArray<float> weights(run.weights == nullptr ? 0 : batch, "a mini-batch", run.resources);
  std::vector<uint32_t> drawn(static_cast<size_t>(batch));
  const int64_t steps_per_pass = divide_up(n, batch);
  const auto* const centres = static_cast<const float*>(model.centres.mutable_view().data());
  std::vector<float> before(static_cast<size_t>(run.shape.clusters * run.shape.cols));
  std::fill_n(model.counts.data(), run.shape.clusters, 0.0);
  backend.set_centres(model.centres.mutable_view());
  for (int64_t pass = 0; pass < run.params.iterations; ++pass) {
    std::copy_n(centres, before.size(), before.begin());
    double objective = 0;
    for (int64_t step = pass * steps_per_pass; step < (pass + 1) * steps_per_pass; ++step) {
      for (int64_t i = 0; i < batch; ++i) {
        drawn[static_cast<size_t>(i)] = rng.below(static_cast<uint64_t>(step * batch + i), static_cast<uint32_t>(n));
      }
      std::sort(drawn.begin(), drawn.end());
      const MatrixView rows = backend.gather(run.source, drawn);
      for (int64_t i = 0; i < weights.size(); ++i) {
        weights[i] = run.weights[drawn[static_cast<size_t>(i)]];
      }
      backend.set_rows({batch, labels.data(), keys.data(), weights.size() == 0 ? nullptr : weights.data()});
      backend.begin_pass({.adds_up = true});
      backend.scan(rows, 0, run.meter);
      objective += backend.objective();
      backend.move_by_batch(model.centres.mutable_view(), model.counts.data());
      run.meter.poll();
    }
    // What the whole data would have, going by the rows of this pass.
    model.objective = objective * static_cast<double>(n) / static_cast<double>(steps_per_pass * batch);
    if (run.params.history) model.history.push_back(model.objective);
    ++model.iterations;
    backend.get_centres(model.centres.mutable_view());
    if (squared_moves(before.data(), centres, run.shape.clusters, run.shape.cols) <= run.tolerance) break;
  }
  if (!run.params.compute_labels) return;
  backend.set_rows({n, model.labels.data(), run.keys, run.weights});
  run_pass(run, {}, model);
  backend.get_labels();
}

}  // namespace kith
