// The loops of k-means, over the steps of a backend: Lloyd's, and mini-batches.
#include "cluster/steps/centre_means.hpp"
#include "cluster/steps/kmeans_run.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>
#include <queue>
#include <unordered_set>

namespace kith {
namespace {

// Orders rows by distance: larger is farther, and of equally far rows the first is larger.
uint64_t farness(float key, int64_t row) { return pack_neighbor(ordered_key(key), ~static_cast<uint32_t>(row)); }

// The farthest rows that may leave their centres, farthest first: twice as many as wanted, since some are the last of
// their centre. Of equally far rows of one centre only the first is taken: they may be equal, and of two equal centres
// one would stay empty.
std::vector<int64_t> farthest_rows(const KMeansRun& run, const int32_t* labels, int64_t wanted) {
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> kept;
  std::unordered_set<uint64_t> places;  // of those kept: key and centre
  const auto place_of = [&](int64_t row) {
    return pack_neighbor(ordered_key(run.keys[row]), static_cast<uint32_t>(labels[row]));
  };
  const auto drop_nearest = [&] {
    places.erase(place_of(int64_t{~row_of(kept.top())}));
    kept.pop();
  };
  const auto most = static_cast<size_t>(2 * wanted);
  for (int64_t i = 0; i < run.shape.rows; ++i) {
    const float key = run.keys[i];
    if (run.weights != nullptr && !(run.weights[i] > 0)) continue;
    // Moving a row that equals its centre gains nothing, and a zero vector cannot be a centre of length 1.
    if (run.params.spherical ? key == 0 : !(key > 0)) continue;
    const uint64_t far = farness(key, i);
    if (kept.size() == most && far < kept.top()) continue;
    if (!places.insert(place_of(i)).second) continue;
    if (kept.size() == most) drop_nearest();
    kept.push(far);
  }
  std::vector<int64_t> rows(kept.size());
  for (size_t i = rows.size(); i > 0; --i) {
    const uint32_t row = ~row_of(kept.top());
    rows[i - 1] = row;
    kept.pop();
  }
  return rows;
}

// Whether some centre has no weight in model.counts.data().
bool has_empty_cluster(const KMeansRun& run, const KMeansModel& model) {
  return !std::all_of(model.counts.data(), model.counts.data() + run.shape.clusters,
                      [](double count) { return count > 0; });
}

// Gives each empty centre a row of its own: the one farthest from its centre. Call after a pass whose weights are in
// model.counts.data(); changes the backend's sums, and returns how many centres received a row.
//
// The empty centres, in order, take rows by descending key, then by row number, each row once. A row is subtracted from
// its old centre's sum. The last row of a centre stays, as does one that equals its centre, where nothing would be
// gained. The objective falls by at least the row's share in it.
int64_t fill_empty_clusters(const KMeansRun& run, const KMeansModel& model) {
  const int64_t cols = run.shape.cols;
  std::vector<int64_t> empty;
  for (int64_t c = 0; c < run.shape.clusters; ++c) {
    if (!(model.counts[c] > 0)) empty.push_back(c);
  }
  if (empty.empty()) return 0;

  run.backend.get_rows();
  const SumsView sums = run.backend.sums();
  std::vector<int64_t> members(static_cast<size_t>(run.shape.clusters), 0);
  for (int64_t i = 0; i < run.shape.rows; ++i) {
    if (run.weights == nullptr || run.weights[i] > 0) ++members[static_cast<size_t>(model.labels[i])];
  }
  std::vector<float> values(static_cast<size_t>(cols));
  size_t filled = 0;
  for (const int64_t row : farthest_rows(run, model.labels.data(), static_cast<int64_t>(empty.size()))) {
    if (filled == empty.size()) break;
    const int64_t old = model.labels[row];
    if (members[static_cast<size_t>(old)] <= 1) continue;
    gather_as_floats(run.source, {static_cast<uint32_t>(row)}, values.data(), run.resources);
    --members[static_cast<size_t>(old)];
    const int64_t centre = empty[filled++];
    const double weight = run.weights == nullptr ? 1.0 : static_cast<double>(run.weights[row]);
    for (int64_t c = 0; c < cols; ++c) {
      const double value = weight * static_cast<double>(values[static_cast<size_t>(c)]);
      sums.sums[old * cols + c] -= value;
      sums.sums[centre * cols + c] = value;
    }
    sums.weights[old] -= weight;
    sums.weights[centre] = weight;
  }
  run.backend.put_sums();
  return static_cast<int64_t>(filled);
}

}  // namespace

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

void run_pass(const KMeansRun& run, const KMeansPass& pass, KMeansModel& model) {
  run.backend.begin_pass(pass);
  run.backend.scan_all(run.source, run.plan.piece_rows, run.meter);
  model.objective = run.backend.objective();
}

void run_lloyd(const KMeansRun& run, KMeansModel& model) {
  KMeansBackend& backend = run.backend;
  backend.set_rows({run.shape.rows, model.labels.data(), run.keys, run.weights});
  backend.set_centres(model.centres.mutable_view());
  // Without a history only the final pass is scored; without that one, all are.
  const bool scores = run.params.history || !run.params.compute_labels;
  bool labelled = false;  // labels are those of the centres,
  bool settled = false;   // and so is the objective
  for (int64_t i = 0; i < run.params.iterations && !labelled; ++i) {
    run_pass(run, {.adds_up = true, .scores = scores}, model);
    if (run.params.history) model.history.push_back(model.objective);
    ++model.iterations;
    std::copy_n(backend.weights(), run.shape.clusters, model.counts.data());
    if (!scores && has_empty_cluster(run, model)) run_pass(run, {.adds_up = true}, model);  // it wants the farthest
    const int64_t filled = fill_empty_clusters(run, model);
    const double moved = backend.move_to_means(model.centres.mutable_view());
    labelled = filled == 0 && moved == 0;
    settled = labelled && scores;
    if (moved <= run.tolerance) break;
  }
  backend.get_centres(model.centres.mutable_view());
  if (!run.params.compute_labels) return;
  if (!settled) run_pass(run, {.labels_known = labelled}, model);
  backend.get_labels();
  if (!settled) backend.get_counts(model.counts.data());
}

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
    // Extrapolates the objective from the rows of this pass to all rows.
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
