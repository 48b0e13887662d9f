// A k-NN graph by NN-Descent: a neighbour's neighbour is likely a neighbour. Rounds of joins improve initial lists of
// any quality until the requested recall is reached or little changes.
//
// Cost: up to 2 p (p - 1) + 4 p^2 distances per row and round, fewer as fewer neighbours are new.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "graph/build/nn_descent/descent_passes.hpp"
#include "graph/build/nn_descent/join_rules.hpp"
#include "graph/lists/graph_lists_cpu.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

namespace kith {

// One round of NN-Descent by GNND's rules ("Large-scale approximate k-NN graph construction on GPU"): what a backend
// does; the loop around it (nn_descent.cpp) is the same for all.
//
//   sample   the first p NEW and the first p OLD neighbours of every list; the NEW ones sampled become OLD; and for
//   every
//            row up to p of those that sampled it, of each kind
//   join     a row's NEW samples meet each other and its OLD ones. Each NEW sample is offered the nearest NEW and the
//            nearest OLD one, each OLD sample the nearest NEW one (selective), or every pair is offered (all); an offer
//            of a neighbour that the list has, or of one beyond its end, is dropped
//   merge    offers enter the lists as NEW neighbours
//
// Lists do not change during a join, so that its order does not matter. Offers wait in an inbox of some slots for each
// row (join_rules.hpp). In a merge of two sets only pairs across them meet, NEW with OLD: OLD samples are of the row's
// own set, and those of the other are passed over.
//
// Several ranks or devices (graph/lists/graph_share.hpp) each have all lists and draw all samples. Each joins the
// samples of its own rows, gets what the others have found for these, merges that in, and gives the lists to the
// others.
//
// Memory: 16 p + 8 slots bytes per row besides the lists.
class DescentSteps {
 public:
  virtual ~DescentSteps() = default;
  virtual void sample(int64_t round, ProgressMeter& meter) = 0;
  // Returns the number of pairs compared.
  virtual int64_t join(int64_t round, ProgressMeter& meter) = 0;
  // Where joins are divided: gets the offers of the others for the rows of this one.
  virtual void gather() = 0;
  // Returns the number of neighbours that entered lists.
  virtual int64_t merge(ProgressMeter& meter) = 0;
};

// The arguments must outlive the result.
std::unique_ptr<DescentSteps> make_descent_steps_cpu(const PairRows& rows, const DescentRules& rules,
                                                     WorkingLists& lists, const Resources& resources,
                                                     const DescentPasses& passes = {});
// The lists must be in GPU memory.
std::unique_ptr<DescentSteps> make_descent_steps_cuda(GraphLists& lists, const DescentRules& rules,
                                                      const DescentPasses& passes);

struct DescentParams {
  Metric metric = Metric::l2;
  int64_t k = 15;
  DescentRules rules;
  int64_t iterations = 20;       // at most
  double delta = 0.001;          // stops when fewer than delta n k neighbours entered in a round
  std::optional<double> recall = {};  // ends the rounds when reached; empty: until they converge
  int64_t gathered_rows = 0;          // of all ranks, whose offers are exchanged together
};

// The rounds of a call by its parameters: what is not given has its default, the same for graphs that are built, merged
// and of a metric of the user's.

// More than k, so that there are many neighbours of neighbours.
inline int64_t default_list_length(int64_t k) { return std::max<int64_t>(64, round_up(k + k / 4, 32)); }
inline int64_t default_samples(int64_t list_length) { return std::clamp<int64_t>(list_length / 2, 1, 32); }
inline constexpr int64_t kDefaultIterations = 20;
inline constexpr double kDefaultDelta = 0.001;
inline constexpr int64_t kInboxSlots = 32;

// `Params`: KnnGraphParams, GraphMergeParams.
template <typename Params>
DescentParams descent_params(const Params& params, Metric metric, int64_t k, int64_t list_length) {
  DescentParams rounds;
  rounds.metric = metric;
  rounds.k = k;
  rounds.rules.samples = params.samples.value_or(default_samples(list_length));
  rounds.rules.inbox_slots = kInboxSlots;
  rounds.rules.seed = params.seed;
  if constexpr (requires { params.update; }) rounds.rules.all_pairs = params.update == GraphUpdate::all;
  rounds.iterations = params.iterations.value_or(kDefaultIterations);
  rounds.delta = params.delta.value_or(kDefaultDelta);
  rounds.recall = params.recall;
  return rounds;
}

// Writes the settings of rounds to a report.
void put_rounds(const DescentParams& params, int64_t list_length, GraphReport& report);

// Improves lists that are not empty, with all who share them.
BuildOutcome run_descent(GraphLists& lists, const DescentParams& params, const Resources& resources);

}  // namespace kith
