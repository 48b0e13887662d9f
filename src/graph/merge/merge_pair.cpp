#include "graph/merge/merge_pair.hpp"

#include <kith/knn.hpp>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kBatch = 16384;
constexpr int64_t kSelectiveRounds = 2;

struct SetOfRows {
  int64_t first;
  int64_t count;
};

void add_all(GraphBackend& backend, const MergeInput& input, int64_t most) {
  backend.add_rows(named_by(input.first, 0, most));
  backend.add_rows(named_by(input.second, input.boundary, most));
}

// The nearest rows of one set for each row of the other.
void add_nearest(GraphBackend& backend, Metric metric, SetOfRows rows, SetOfRows others, int64_t k,
                 const Resources& resources) {
  const MatrixView& x = backend.view();
  const KnnParams wish{.k = std::min(k, others.count), .metric = metric, .check_finite = false};
  const MatrixView base = x.slice(others.first, others.count);
  for (int64_t at = 0; at < rows.count; at += kBatch) {
    const int64_t batch = std::min(kBatch, rows.count - at);
    const Neighbors found = knn(x.slice(rows.first + at, batch), base, wish, resources.with_progress({}));
    backend.add_rows({found.ids(), batch, found.k(), found.k(), rows.first + at, others.first});
  }
}

}  // namespace

BuildOutcome merge_pair(GraphBackend& backend, const MergeInput& input, DescentWish wish, const Resources& resources) {
  // The near halves of the lists, which the sets have settled among themselves.
  const int64_t half = backend.list_length() / 2;
  add_all(backend, input, half);
  backend.survey(wish.k, Flags::set);
  wish.rules.boundary = input.boundary;
  // Few pairs meet across the sets. Once lists are near their places, offering all of them saves rounds.
  wish.rules.all_pairs = true;
  wish.rules.selective_rounds = kSelectiveRounds;
  backend.add_random_rows(wish.rules.seed, input.boundary);
  // Recall is asked for with what is set aside put back; until then it is measured of what the rounds have found.
  BuildOutcome outcome = run_descent(backend, wish, resources);
  // What was set aside comes back.
  if (input.first.k() > half) add_all(backend, input, input.first.k());
  outcome.recall = backend.measure();
  if (wish.recall && outcome.recall) outcome.reached = outcome.recall->recall >= *wish.recall;
  return outcome;
}

void merge_exactly(GraphBackend& backend, const MergeInput& input, const Resources& resources) {
  const SetOfRows first{0, input.boundary};
  const SetOfRows second{input.boundary, backend.rows() - input.boundary};
  const Metric metric = input.first.metric();
  const int64_t k = input.first.k();
  add_all(backend, input, k);
  if (first.count == 0 || second.count == 0) return;
  add_nearest(backend, metric, first, second, k, resources);
  add_nearest(backend, metric, second, first, k, resources);
}

}  // namespace kith
