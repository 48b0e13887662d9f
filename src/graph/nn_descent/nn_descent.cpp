#include "graph/nn_descent/nn_descent.hpp"

#include "graph/list_survey.hpp"

#include <chrono>

namespace kith {

BuildOutcome run_descent(const PairRows& rows, const DescentWish& wish, const ControlRows* control,
                         WorkingLists& lists, const Resources& resources) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point began = Clock::now();
  BuildOutcome outcome;
  outcome.reached = !wish.recall;
  const auto measure = [&] {
    if (control == nullptr) return;
    outcome.recall = control->measure(lists);
    if (wish.recall && outcome.recall->recall >= *wish.recall) outcome.reached = true;
  };
  measure();
  if (wish.recall && outcome.reached) return outcome;
  const std::unique_ptr<DescentSteps> steps = make_descent_steps_cpu(rows, wish.rules, lists, resources);
  const double little = wish.delta * static_cast<double>(lists.rows()) * static_cast<double>(wish.k);
  constexpr int64_t kPasses = 4;  // over all rows in a round
  ProgressMeter meter("descend", wish.iterations * kPasses * lists.rows(), resources);
  for (int64_t number = 0; number < wish.iterations; ++number) {
    GraphRound round;
    steps->sample(number, meter);
    round.comparisons = steps->join(number, meter);
    round.updates = steps->merge(meter);
    round.phi = survey_lists(lists, wish.k, wish.metric, Flags::keep, resources).phi;
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

}  // namespace kith
