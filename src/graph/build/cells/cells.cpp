#include "graph/build/cells/cells.hpp"

#include "core/within_limits.hpp"
#include "graph/lists/graph_share.hpp"

#include <algorithm>
#include <chrono>

namespace kith {

std::unique_ptr<CellSteps> make_cell_steps(GraphLists& lists, const CellsParams& params) {
  return dispatch_lists(
      lists, [&](GraphListsCpu& on_cpu) { return make_cell_steps_cpu(on_cpu, params); },
      [&] { return make_cell_steps_cuda(lists, params); });
}

BuildOutcome run_cells(CellSteps& steps, GraphLists& lists, const CellsParams& params, const Resources& resources) {
  using Clock = std::chrono::steady_clock;
  BuildOutcome outcome;
  outcome.reached = !params.recall;
  steps.cut();
  if (counts_only(resources)) {
    steps.count_waves(widest_wave(params.probes));
    lists.survey(params.k, Flags::keep);
    lists.measure();
    return outcome;
  }
  const int64_t most = std::min(steps.probes(), params.probes);
  const int64_t foreseen = steps.forecast().needed;
  const int64_t needed = foreseen > 0 ? std::min(foreseen, most) : most;
  const int64_t own_rows = params.share == nullptr ? lists.rows() : params.share->rows().count;
  ProgressMeter meter("compare", own_rows * needed, resources);
  Clock::time_point began = steps.began();
  for (int64_t probe = 0; probe < most && !(params.recall && outcome.reached);) {
    // Where less was found than foreseen, more probes follow.
    const int64_t end = wave_end(probe, probe < needed ? needed : most);
    GraphRound round;
    round.comparisons = steps.wave(probe, end, meter);
    const ListSurvey survey = lists.survey(params.k, Flags::set);
    round.phi = survey.phi;
    round.updates = survey.updates;
    outcome.recall = lists.measure();
    if (outcome.recall) round.recall = outcome.recall->recall;
    round.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    began = Clock::now();
    outcome.rounds.push_back(round);
    outcome.probes = probe = end;
    if (params.recall && outcome.recall && end >= needed) outcome.reached = outcome.recall->recall >= *params.recall;
  }
  lists.survey(params.k, Flags::clear);
  meter.finish();
  return outcome;
}

}  // namespace kith
