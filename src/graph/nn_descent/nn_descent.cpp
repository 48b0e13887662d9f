#include "graph/nn_descent/nn_descent.hpp"

#include "graph/graph_backend_cpu.hpp"

#include <chrono>

namespace kith {

BuildOutcome run_descent(GraphBackend& backend, const DescentWish& wish, const Resources& resources) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point began = Clock::now();
  BuildOutcome outcome;
  outcome.reached = !wish.recall;
  const auto measure = [&] {
    outcome.recall = backend.measure();
    if (wish.recall && outcome.recall && outcome.recall->recall >= *wish.recall) outcome.reached = true;
  };
  measure();
  if (wish.recall && outcome.reached) return outcome;
  const std::unique_ptr<DescentSteps> steps = backend.descent_steps(wish.rules);
  const double little = wish.delta * static_cast<double>(backend.rows()) * static_cast<double>(wish.k);
  constexpr int64_t kPasses = 4;  // over all rows in a round
  ProgressMeter meter("descend", wish.iterations * kPasses * backend.rows(), resources);
  for (int64_t number = 0; number < wish.iterations; ++number) {
    GraphRound round;
    steps->sample(number, meter);
    round.comparisons = steps->join(number, meter);
    round.updates = steps->merge(meter);
    round.phi = backend.survey(wish.k, Flags::keep).phi;
    measure();
    if (outcome.recall) round.recall = outcome.recall->recall;
    round.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    began = Clock::now();
    outcome.rounds.push_back(round);
    if ((wish.recall && outcome.reached) || static_cast<double>(round.updates) <= little) break;
  }
  meter.finish();
  return outcome;
}

BuildOutcome run_descent(const PairRows& rows, const DescentWish& wish, const ControlRows* control,
                         WorkingLists& lists, const Resources& resources) {
  return run_descent(*make_graph_backend_cpu(rows, wish.metric, control, lists, resources), wish, resources);
}

}  // namespace kith
