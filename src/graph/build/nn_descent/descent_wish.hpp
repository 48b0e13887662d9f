// What rounds of NN-Descent shall do, from the parameters of a call: what is not given has its default, the same for graphs
// that are built, merged and of a metric of the user's.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/metric.hpp>

#include "core/divide.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

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

}  // namespace kith
