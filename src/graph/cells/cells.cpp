#include "graph/cells/cells.hpp"

#include "graph/cells/cell_partition.hpp"
#include "graph/cells/cell_ranks_cpu.hpp"
#include "graph/cells/cell_steps.hpp"
#include "graph/graph_backend_cpu.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

namespace kith {

double probes_needed(double first_probe, double first_missing, double probe, double missing, double wanted_missing) {
  if (missing <= wanted_missing) return probe;
  if (!(missing < first_missing)) return std::numeric_limits<double>::infinity();
  const double slope = std::log(first_missing / missing) / (std::sqrt(probe) - std::sqrt(first_probe));
  const double root = std::sqrt(probe) + std::log(missing / std::max(wanted_missing, 1e-9)) / slope;
  return root * root;
}

BuildOutcome build_by_cells(GraphBackend& backend, const CellsWish& wish, const Resources& resources) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point began = Clock::now();
  const std::unique_ptr<CellSteps> steps =
      backend.cut_cells({wish.metric, wish.cells, wish.probes, wish.seed, wish.likely, wish.recall.value_or(0)},
                        wish.keeps_order);
  BuildOutcome outcome;
  outcome.reached = !wish.recall;
  std::vector<int64_t> ends;  // of the waves
  ProgressMeter meter("compare", backend.rows() * steps->probes(), resources);
  int64_t expected = 0;  // probes, in all
  for (int64_t probe = 0; probe < steps->probes();) {
    const int64_t end = wave_end(probe, steps->probes(), expected);
    GraphRound round;
    round.comparisons = steps->wave(probe, end, meter);
    const ListSurvey survey = backend.survey(wish.k, Flags::set);
    round.phi = survey.phi;
    round.updates = survey.updates;
    outcome.recall = backend.measure();
    if (outcome.recall) round.recall = outcome.recall->recall;
    round.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    began = Clock::now();
    outcome.rounds.push_back(round);
    outcome.probes = end;
    probe = end;
    ends.push_back(end);
    if (wish.recall && outcome.recall && outcome.recall->recall >= *wish.recall) {
      outcome.reached = true;
      break;
    }
    constexpr int64_t kFewest = 5;       // probes, before anything is concluded from them
    constexpr int64_t kFewestToEnd = 7;  // and before cells are given up
    if (!wish.recall || !round.recall || end < kFewest) continue;
    // From half as many probes: neighbouring rounds differ by no more than their recall errs.
    const auto half = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), end / 2) - ends.begin());
    const size_t earlier = half > 0 ? half - 1 : 0;
    const double needed = probes_needed(static_cast<double>(ends[earlier]), 1 - *outcome.rounds[earlier].recall,
                                        static_cast<double>(end), 1 - *round.recall, 1 - *wish.recall);
    const auto most = static_cast<double>(steps->probes());
    if (wish.gives_up && end >= kFewestToEnd && needed > 1.3 * most) break;
    constexpr double kRounding = 1e-6;  // so that the last bit of a logarithm decides nothing where it is a whole number
    expected = static_cast<int64_t>(std::ceil(std::min(needed, most) - kRounding));
    steps->expect(std::min(enough_probes(expected), steps->probes()));
  }
  backend.survey(wish.k, Flags::clear);
  meter.finish();
  return outcome;
}

BuildOutcome build_by_cells(const PairRows& rows, const CellsWish& wish, const ControlRows* control,
                            WorkingLists& lists, const Resources& resources) {
  return build_by_cells(*make_graph_backend_cpu(rows, wish.metric, control, lists, resources), wish, resources);
}

int64_t cells_bytes(int64_t rows, int64_t cols, const ComparedCells& compared, const CellsWish& wish, int threads) {
  int64_t widest = 1;
  for (int64_t probe = 0; probe < wish.probes; ++probe) {
    const int64_t end = wave_end(probe, wish.probes);
    widest = std::max(widest, std::min(longest_wave_end(end), wish.probes) - probe);
  }
  // With the extra column and cell of inner_product.
  return CellPartition::bytes_for(rows, cols, {wish.metric, wish.cells, wish.probes, wish.seed}) +
         CellRanks::bytes_for(wish.cells, cols + 1, wish.probes + 1, threads) +
         cell_steps_bytes_cpu(rows, compared, widest, wish.cells, threads);
}

}  // namespace kith
