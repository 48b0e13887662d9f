#include "cluster/empty_clusters.hpp"

#include "cluster/row_sample.hpp"
#include "core/ordered_key.hpp"

#include <algorithm>
#include <queue>

namespace kith {
namespace {

// Larger is farther; of equally far rows the first.
uint64_t farness(float key, int64_t row) { return pack_neighbor(ordered_key(key), ~static_cast<uint32_t>(row)); }

// The farthest rows that may leave their centres, farthest first. Twice as many as wanted, since some are the last of
// their centre.
std::vector<int64_t> farthest_rows(const KMeansRun& run, const KMeansOutcome& outcome, int64_t wanted) {
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> kept;
  const auto most = static_cast<size_t>(2 * wanted);
  for (int64_t i = 0; i < run.shape.rows; ++i) {
    const float key = outcome.keys[i];
    if (run.weights != nullptr && !(run.weights[i] > 0)) continue;
    // A row on its centre gains nothing; and a zero vector, whose products are all 0, makes no centre of length 1.
    if (run.params.spherical ? key == 0 : !(key > 0)) continue;
    const uint64_t far = farness(key, i);
    if (kept.size() == most && far < kept.top()) continue;
    if (kept.size() == most) kept.pop();
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

}  // namespace

bool has_empty_cluster(const KMeansRun& run, const KMeansOutcome& outcome) {
  return !std::all_of(outcome.counts, outcome.counts + run.shape.clusters, [](double count) { return count > 0; });
}

int64_t fill_empty_clusters(const KMeansRun& run, const KMeansOutcome& outcome) {
  const int64_t cols = run.shape.cols;
  std::vector<int64_t> empty;
  for (int64_t c = 0; c < run.shape.clusters; ++c) {
    if (!(outcome.counts[c] > 0)) empty.push_back(c);
  }
  if (empty.empty()) return 0;

  run.backend.get_rows();
  const SumsView sums = run.backend.sums();
  std::vector<int64_t> members(static_cast<size_t>(run.shape.clusters), 0);
  for (int64_t i = 0; i < run.shape.rows; ++i) {
    if (run.weights == nullptr || run.weights[i] > 0) ++members[static_cast<size_t>(outcome.labels[i])];
  }
  std::vector<float> values(static_cast<size_t>(cols));
  size_t filled = 0;
  for (const int64_t row : farthest_rows(run, outcome, static_cast<int64_t>(empty.size()))) {
    if (filled == empty.size()) break;
    const int64_t old = outcome.labels[row];
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

}  // namespace kith
