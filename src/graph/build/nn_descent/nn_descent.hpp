// A k-NN graph by NN-Descent: a neighbour's neighbour is likely a neighbour. Rounds of joins (descent_steps.hpp) improve
// lists that begin anywhere, until the recall that is wanted is reached or little changes.
//
// Cost: up to 2 p (p - 1) + 4 p^2 distances a row and round, fewer as fewer neighbours are new.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include "core/divide.hpp"
#include "graph/build/nn_descent/descent_steps.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/lists/control_rows.hpp"
#include "graph/lists/graph_lists.hpp"
#include "graph/lists/pairs/pair_rows.hpp"
#include "graph/lists/working_lists.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace kith {

struct DescentWish {
  Metric metric = Metric::l2;
  int64_t k = 15;
  DescentRules rules;
  int64_t iterations = 20;       // at most
  double delta = 0.001;          // stops when fewer than delta n k neighbours entered in a round
  std::optional<double> recall = {};  // stops the rounds; none: they end by themselves
};

// The wish of a call by its parameters: what is not given has its default, the same for graphs that are built, merged and of
// a metric of the user's.

// Room for more than k, so that neighbours' neighbours are many.
inline int64_t default_list_length(int64_t k) { return std::max<int64_t>(64, round_up(k + k / 4, 32)); }
inline int64_t default_samples(int64_t list_length) { return std::clamp<int64_t>(list_length / 2, 1, 32); }
inline constexpr int64_t kDefaultIterations = 20;
inline constexpr double kDefaultDelta = 0.001;
inline constexpr int64_t kInboxSlots = 32;

// `Params`: KnnGraphParams, GraphMergeParams.
template <typename Params>
DescentWish descent_wish(const Params& params, Metric metric, int64_t k, int64_t list_length) {
  DescentWish wish;
  wish.metric = metric;
  wish.k = k;
  wish.rules.samples = params.samples.value_or(default_samples(list_length));
  wish.rules.inbox_slots = kInboxSlots;
  wish.rules.seed = params.seed;
  if constexpr (requires { params.update; }) wish.rules.all_pairs = params.update == GraphUpdate::all;
  wish.iterations = params.iterations.value_or(kDefaultIterations);
  wish.delta = params.delta.value_or(kDefaultDelta);
  wish.recall = params.recall;
  return wish;
}

// What a report says of them.
void put_rounds(const DescentWish& wish, int64_t list_length, GraphReport& report);

// Improves lists that hold something.
BuildOutcome run_descent(GraphLists& lists, const DescentWish& wish, const Resources& resources);
// The same on the CPU. `control` estimates the recall; none: nothing is estimated.
BuildOutcome run_descent(const PairRows& rows, const DescentWish& wish, const ControlRows* control,
                         WorkingLists& lists, const Resources& resources);

}  // namespace kith
