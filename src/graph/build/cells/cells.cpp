#include "graph/build/cells/cells.hpp"

#include "core/within_limits.hpp"
#include "graph/lists/graph_share.hpp"

#include <algorithm>
#include <chrono>

namespace kith {

std::unique_ptr<CellSteps> make_cell_steps(GraphLists& lists, const CellsWish& wish) {
  return dispatch_lists(
      lists, [&](GraphListsCpu& on_cpu) { return make_cell_steps_cpu(on_cpu, wish); },
      [&] { return make_cell_steps_cuda(lists, wish); });
}

BuildOutcome run_cells(CellSteps& steps, GraphLists& lists, const CellsWish& wish, const Resources& resources) {
  using Clock = std::chrono::steady_clock;
  BuildOutcome outcome;
  outcome.reached = !wish.recall;
  steps.cut();
  if (only_counts(resources)) {
    steps.count_waves(widest_wave(wish.probes));
    lists.survey(wish.k, Flags::keep);
    lists.measure();
    return outcome;
  }
  const int64_t most = std::min(steps.probes(), wish.probes);
  const int64_t foreseen = steps.forecast().needed;
  const int64_t needed = foreseen > 0 ? std::min(foreseen, most) : most;
  const int64_t own_rows = wish.share == nullptr ? lists.rows() : wish.share->rows().count;
  ProgressMeter meter("compare", own_rows * needed, resources);
  Clock::time_point began = steps.began();
  for (int64_t probe = 0; probe < most && !(wish.recall && outcome.reached);) {
    // Where less was found than foreseen, more probes follow.
    const int64_t end = wave_end(probe, probe < needed ? needed : most);
    GraphRound round;
    round.comparisons = steps.wave(probe, end, meter);
    const ListSurvey survey = lists.survey(wish.k, Flags::set);
    round.phi = survey.phi;
    round.updates = survey.updates;
    outcome.recall = lists.measure();
    if (outcome.recall) round.recall = outcome.recall->recall;
    round.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    began = Clock::now();
    outcome.rounds.push_back(round);
    outcome.probes = probe = end;
    if (wish.recall && outcome.recall && end >= needed) outcome.reached = outcome.recall->recall >= *wish.recall;
  }
  lists.survey(wish.k, Flags::clear);
  meter.finish();
  return outcome;
}

}  // namespace kith
