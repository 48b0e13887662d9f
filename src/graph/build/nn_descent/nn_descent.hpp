// A k-NN graph by NN-Descent: a neighbour's neighbour is likely a neighbour. Rounds of joins (descent_steps.hpp) improve
// lists that begin anywhere, until the recall that is wanted is reached or little changes.
//
// Cost: up to 2 p (p - 1) + 4 p^2 distances a row and round, fewer as fewer neighbours are new.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include "graph/build/nn_descent/descent_steps.hpp"
#include "graph/lists/build_outcome.hpp"
#include "graph/lists/control_rows.hpp"
#include "graph/lists/graph_lists.hpp"
#include "graph/lists/pairs/pair_rows.hpp"
#include "graph/lists/working_lists.hpp"

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

// Improves lists that hold something.
BuildOutcome run_descent(GraphLists& lists, const DescentWish& wish, const Resources& resources);
// The same on the CPU. `control` estimates the recall; none: nothing is estimated.
BuildOutcome run_descent(const PairRows& rows, const DescentWish& wish, const ControlRows* control,
                         WorkingLists& lists, const Resources& resources);

}  // namespace kith
