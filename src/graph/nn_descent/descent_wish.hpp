// What rounds of NN-Descent shall do, from the parameters of a call: what is not given has its default, the same for graphs
// that are built, merged and of a metric of the user's.
#pragma once

#include <kith/metric.hpp>

#include "graph/method_choice.hpp"
#include "graph/nn_descent/nn_descent.hpp"

#include <cstdint>

namespace kith {

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
