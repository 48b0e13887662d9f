#include "graph/cells/cells.hpp"

#include "graph/cells/cell_partition.hpp"
#include "graph/cells/cell_steps.hpp"
#include "graph/list_survey.hpp"

#include <algorithm>
#include <chrono>

namespace kith {

BuildOutcome build_by_cells(const PairRows& rows, const CellsWish& wish, const ControlRows* control,
                            WorkingLists& lists, uint32_t* order, const Resources& resources) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point began = Clock::now();
  const CellPartition cells(rows.view(), {wish.metric, wish.cells, wish.probes, wish.seed}, resources);
  const std::unique_ptr<CellSteps> steps = make_cell_steps_cpu(rows, cells, lists, resources);
  BuildOutcome outcome;
  outcome.reached = !wish.recall;
  ProgressMeter meter("compare", lists.rows() * cells.probes(), resources);
  for (int64_t probe = 0; probe < cells.probes();) {
    const int64_t end = wave_end(probe, cells.probes());
    GraphRound round;
    round.comparisons = steps->wave(probe, end, meter);
    const ListSurvey survey = survey_lists(lists, wish.k, wish.metric, Flags::set, resources);
    round.phi = survey.phi;
    round.updates = survey.updates;
    if (control != nullptr) {
      outcome.recall = control->measure(lists);
      round.recall = outcome.recall->recall;
    }
    round.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    began = Clock::now();
    outcome.rounds.push_back(round);
    probe = outcome.probes = end;
    if (wish.recall && outcome.recall && outcome.recall->recall >= *wish.recall) {
      outcome.reached = true;
      break;
    }
  }
  survey_lists(lists, wish.k, wish.metric, Flags::clear, resources);
  if (order != nullptr) std::copy_n(cells.members(0), lists.rows(), order);
  meter.finish();
  return outcome;
}

int64_t cells_bytes(int64_t rows, int64_t cols, PanelFormat format, const CellsWish& wish, int64_t list_length,
                    int threads) {
  int64_t widest = 1;
  for (int64_t probe = 0; probe < wish.probes; probe = wave_end(probe, wish.probes)) {
    widest = std::max(widest, wave_end(probe, wish.probes) - probe);
  }
  return CellPartition::bytes_for(rows, cols, {wish.metric, wish.cells, wish.probes, wish.seed}) +
         cell_steps_bytes_cpu(rows, cols, format, list_length, widest, wish.cells, threads);
}

}  // namespace kith
