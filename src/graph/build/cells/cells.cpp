#include "graph/build/cells/cells.hpp"

#include "core/within_limits.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

namespace kith {

namespace {

// The logarithm to base 2, of the mantissa's first 32 bits, by squaring: whole numbers alone, so that no library's last
// bit decides where a wave ends.
double whole_log2(double value) {
  constexpr int kBits = 31;
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);                   // from 1/2 to 1
  auto squared = static_cast<uint64_t>(std::ldexp(mantissa, kBits + 1));  // from 1 to 2, times 2^kBits
  int64_t digits = exponent - 1;
  for (int i = 0; i < kBits; ++i) {
    squared = (squared * squared) >> kBits;
    const bool two = squared >> (kBits + 1) != 0;
    digits = 2 * digits + (two ? 1 : 0);
    if (two) squared >>= 1;
  }
  return std::ldexp(static_cast<double>(digits), -kBits);
}

}  // namespace

double probes_needed(double first_probe, double first_missing, double probe, double missing, double wanted_missing) {
  if (missing <= wanted_missing) return probe;
  if (!(missing < first_missing)) return std::numeric_limits<double>::infinity();
  const double slope = whole_log2(first_missing / missing) / (std::sqrt(probe) - std::sqrt(first_probe));
  const double root = std::sqrt(probe) + whole_log2(missing / std::max(wanted_missing, 1e-9)) / slope;
  return root * root;
}

BuildOutcome build_by_cells(GraphLists& lists, const CellsWish& wish, const Resources& resources) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point began = Clock::now();
  const std::unique_ptr<CellSteps> steps = dispatch_lists(
      lists, [&](GraphListsCpu& on_cpu) { return make_cell_steps_cpu(on_cpu, wish); },
      [&] { return make_cell_steps_cuda(lists, wish); });
  BuildOutcome outcome;
  outcome.reached = !wish.recall;
  if (only_counts(resources)) {
    steps->count_waves(widest_wave(wish.probes, wish.recall.has_value()));
    lists.survey(wish.k, Flags::keep);
    lists.measure();
    return outcome;
  }
  std::vector<int64_t> ends;  // of the waves
  ProgressMeter meter("compare", lists.rows() * steps->probes(), resources);
  int64_t expected = 0;  // probes, in all
  for (int64_t probe = 0; probe < steps->probes();) {
    const int64_t end = wave_end(probe, steps->probes(), expected);
    GraphRound round;
    round.comparisons = steps->wave(probe, end, meter);
    const ListSurvey survey = lists.survey(wish.k, Flags::set);
    round.phi = survey.phi;
    round.updates = survey.updates;
    outcome.recall = lists.measure();
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
    constexpr int64_t kFewestToEnd = 7;  // probes, before cells are given up
    if (!wish.recall || !round.recall || end < kFewestConcluded) continue;
    // From half as many probes: neighbouring rounds differ by no more than their recall errs.
    const auto half = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), end / 2) - ends.begin());
    const size_t earlier = half > 0 ? half - 1 : 0;
    const double needed = probes_needed(static_cast<double>(ends[earlier]), 1 - *outcome.rounds[earlier].recall,
                                        static_cast<double>(end), 1 - *round.recall, 1 - *wish.recall);
    const auto most = static_cast<double>(steps->probes());
    if (wish.gives_up && end >= kFewestToEnd && needed > 1.3 * most) break;
    constexpr double kRounding = 1e-6;  // of logarithms: whole numbers of probes are not exceeded by one
    expected = static_cast<int64_t>(std::ceil(std::min(needed, most) - kRounding));
    steps->expect(std::min(enough_probes(expected), steps->probes()));
  }
  lists.survey(wish.k, Flags::clear);
  meter.finish();
  return outcome;
}

}  // namespace kith
