#include "graph/merge/merge_pair.hpp"

#include <kith/knn.hpp>

#include "core/ordered_key.hpp"
#include "graph/list_survey.hpp"
#include "graph/nn_descent/start_lists.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kBatch = 16384;

// The nearest rows of one set for each row of the other.
void offer_nearest(const PairRows& rows, Metric metric, int64_t first, int64_t count, int64_t others, int64_t other_count,
                   int64_t k, WorkingLists& lists, const Resources& resources) {
  const KnnParams wish{.k = std::min(k, other_count), .metric = metric, .check_finite = false};
  const MatrixView base = rows.view().slice(others, other_count);
  for (int64_t at = 0; at < count; at += kBatch) {
    const int64_t batch = std::min(kBatch, count - at);
    const Neighbors found = knn(rows.view().slice(first + at, batch), base, wish, resources.with_progress({}));
    for (int64_t i = 0; i < batch; ++i) {
      for (int64_t j = 0; j < found.k() && found.ids(i)[j] >= 0; ++j) {
        const float distance = found.distances(i)[j];
        const uint32_t key = ordered_key(larger_is_nearer(metric) ? -distance : distance);
        lists.offer_alone(first + at + i, pack_neighbor(key, static_cast<uint32_t>(others + found.ids(i)[j])));
      }
    }
  }
}

}  // namespace

BuildOutcome merge_pair(const PairRows& rows, const MergeInput& input, DescentWish wish, const ControlRows* control,
                        WorkingLists& lists, const Resources& resources) {
  // The near halves of the lists, which the sets have settled among themselves.
  const int64_t half = lists.length() / 2;
  add_graph(rows, input.first, 0, half, lists, resources);
  add_graph(rows, input.second, input.boundary, half, lists, resources);
  survey_lists(lists, wish.k, wish.metric, Flags::set, resources);
  wish.rules.boundary = input.boundary;
  add_random_rows(rows, input.boundary, wish.rules.seed, lists, resources);
  // Recall is asked for with what is set aside put back; until then it is measured of what the rounds have found.
  BuildOutcome outcome = run_descent(rows, wish, control, lists, resources);
  // What was set aside comes back.
  if (input.first.k() > half) {
    offer_graph(rows, input.first, 0, lists, resources);
    offer_graph(rows, input.second, input.boundary, lists, resources);
  }
  if (control != nullptr) outcome.recall = control->measure(lists);
  if (wish.recall && outcome.recall) outcome.reached = outcome.recall->recall >= *wish.recall;
  return outcome;
}

void merge_exactly(const PairRows& rows, const MergeInput& input, WorkingLists& lists, const Resources& resources) {
  const int64_t all = rows.view().rows();
  offer_graph(rows, input.first, 0, lists, resources);
  offer_graph(rows, input.second, input.boundary, lists, resources);
  const Metric metric = input.first.metric();
  const int64_t k = input.first.k();
  if (input.boundary == 0 || input.boundary == all) return;
  offer_nearest(rows, metric, 0, input.boundary, input.boundary, all - input.boundary, k, lists, resources);
  offer_nearest(rows, metric, input.boundary, all - input.boundary, 0, input.boundary, k, lists, resources);
}

void offer_graph(const PairRows& rows, const KnnGraph& graph, int64_t first, WorkingLists& lists,
                 const Resources& resources) {
  add_graph(rows, graph, first, graph.k(), lists, resources);
}

}  // namespace kith
