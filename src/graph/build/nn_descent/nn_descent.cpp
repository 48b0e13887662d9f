#include "graph/build/nn_descent/nn_descent.hpp"

#include "graph/lists/graph_share.hpp"

#include <chrono>

namespace kith {
namespace {

std::unique_ptr<DescentSteps> make_steps(GraphLists& lists, const DescentParams& params) {
  const DescentPasses passes{.share = lists.share(), .gathered_rows = params.gathered_rows};
  const auto on_cpu = [&](GraphListsCpu& here) {
    DescentRules rules = params.rules;
    rules.random_lists = here.has_random_rows();
    DescentPasses ordered = passes;
    if (here.order.size() > 0) ordered.order = here.order.data();
    return make_descent_steps_cpu(here.pairs(), rules, here.lists(), here.resources(), ordered);
  };
  return dispatch_lists(lists, on_cpu, [&] { return make_descent_steps_cuda(lists, params.rules, passes); });
}

}  // namespace

void put_rounds(const DescentParams& params, int64_t list_length, GraphReport& report) {
  report.parameters.push_back({"samples", params.rules.samples});
  report.parameters.push_back({"list_length", list_length});
  report.parameters.push_back({"iterations", params.iterations});
  report.parameters.push_back({"delta", params.delta});
}

BuildOutcome run_descent(GraphLists& lists, const DescentParams& params, const Resources& resources) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point began = Clock::now();
  BuildOutcome outcome;
  outcome.reached = !params.recall;
  const auto measure = [&] {
    outcome.recall = lists.measure();
    if (params.recall && outcome.recall && outcome.recall->recall >= *params.recall) outcome.reached = true;
  };
  measure();
  if (params.recall && outcome.reached) return outcome;
  const std::unique_ptr<DescentSteps> steps = make_steps(lists, params);
  const double little = params.delta * static_cast<double>(lists.rows()) * static_cast<double>(params.k);
  constexpr int64_t kSampling = 2;  // passes of a round over all rows
  constexpr int64_t kJoining = 2;   // over its own
  const GraphShare* const share = lists.share();
  const int64_t own = share == nullptr ? lists.rows() : share->rows().count;
  const auto of_all = [&](int64_t count) { return share == nullptr ? count : share->sum(count); };
  ProgressMeter meter("descend", params.iterations * (kSampling * lists.rows() + kJoining * own), resources);
  for (int64_t number = 0; number < params.iterations; ++number) {
    GraphRound round;
    steps->sample(number, meter);
    round.comparisons = of_all(steps->join(number, meter));
    if (share != nullptr) steps->gather();
    round.updates = of_all(steps->merge(meter));
    lists.give_lists();
    round.phi = lists.survey(params.k, Flags::keep).phi;
    measure();
    if (outcome.recall) round.recall = outcome.recall->recall;
    round.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    began = Clock::now();
    outcome.rounds.push_back(round);
    if ((params.recall && outcome.reached) || static_cast<double>(round.updates) <= little) break;
  }
  meter.finish();
  return outcome;
}

}  // namespace kith
