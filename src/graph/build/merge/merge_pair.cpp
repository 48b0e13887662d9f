#include "graph/build/merge/merge_pair.hpp"

#include <kith/knn.hpp>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kBatch = 16384;

struct SetOfRows {
  int64_t first;
  int64_t count;
};

void add_all(GraphLists& lists, const MergeInput& input, int64_t most) {
  lists.add_rows(named_by(input.first, 0, most));
  lists.add_rows(named_by(input.second, input.boundary, most));
}

// The nearest rows of one set for each row of the other.
void add_nearest(GraphLists& lists, Metric metric, SetOfRows rows, SetOfRows others, int64_t k,
                 const Resources& resources) {
  const MatrixView& x = lists.view();
  const KnnParams wish{.k = std::min(k, others.count), .metric = metric, .check_finite = false};
  const MatrixView base = x.slice(others.first, others.count);
  for (int64_t at = 0; at < rows.count; at += kBatch) {
    const int64_t batch = std::min(kBatch, rows.count - at);
    const Neighbors found = knn(x.slice(rows.first + at, batch), base, wish, resources.with_progress({}));
    lists.add_rows({found.ids(), batch, found.k(), found.k(), rows.first + at, others.first});
  }
}

}  // namespace

BuildOutcome merge_pair(GraphLists& lists, const MergeInput& input, DescentWish wish, const Resources& resources) {
  // The near halves of the lists, which the sets have settled among themselves.
  const int64_t half = lists.length() / 2;
  add_all(lists, input, half);
  lists.survey(wish.k, Flags::set);
  wish.rules.boundary = input.boundary;
  lists.add_random_rows(wish.rules.seed, input.boundary);
  // Recall is asked for with what is set aside put back; until then it is measured of what the rounds have found.
  BuildOutcome outcome = run_descent(lists, wish, resources);
  // What was set aside comes back.
  if (input.first.k() > half) add_all(lists, input, input.first.k());
  outcome.recall = lists.measure();
  if (wish.recall && outcome.recall) outcome.reached = outcome.recall->recall >= *wish.recall;
  return outcome;
}

void merge_exactly(GraphLists& lists, const MergeInput& input, const Resources& resources) {
  const SetOfRows first{0, input.boundary};
  const SetOfRows second{input.boundary, lists.rows() - input.boundary};
  const Metric metric = input.first.metric();
  const int64_t k = input.first.k();
  add_all(lists, input, k);
  if (first.count == 0 || second.count == 0) return;
  add_nearest(lists, metric, first, second, k, resources);
  add_nearest(lists, metric, second, first, k, resources);
}

}  // namespace kith
