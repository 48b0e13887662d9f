// Measures the recall of searches with various parameters, and how much they compare.
//
// The parameter that controls the work, beam or probes, is measured first, ascending, with the default width and
// refine, until nearly everything is found. Then come other widths and refines near the work that reached the recall,
// as long as they compare less than the best so far. So about thirty searches replace a grid of several hundred.
#include <kith/error.hpp>
#include <kith/index.hpp>

#include "core/within_limits.hpp"
#include "graph/search/walk/beam_table.hpp"
#include "index/graph_plan.hpp"
#include "index/index_checks.hpp"
#include "index/index_impl.hpp"
#include "index/refine.hpp"
#include "rows/host_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <tuple>
#include <vector>

namespace kith {
namespace {

constexpr double kNearlyAll = 0.999;        // stop increasing the work at this recall
constexpr int64_t kWidestTunedBeam = 8192;  // beyond the beams of beam_table.hpp, by doubling
constexpr int64_t kWidths[] = {1, 2, 4};
constexpr int64_t kRefines[] = {1, 2, 4, 8, 16};
constexpr int kTimedRounds = 3;
constexpr double kTimedSeconds = 0.1;
constexpr size_t kStepsBack = 2;  // of the work, where the measurement of another width or refine begins

// The parameters to try; 0 for one that the index does not have.
struct TuneSpace {
  bool walks = false;
  int64_t beam_refined = 0;   // neighbours, where a refine that covers the beam does the same as any larger one; else 0
  std::vector<int64_t> work;  // beams or probes, ascending
  std::vector<int64_t> widths = {0};
  std::vector<int64_t> refines = {0};

  TunedSearch at(size_t step, int64_t width, int64_t refine) const {
    TunedSearch search;
    (walks ? search.beam : search.probes) = work[step];
    search.width = width;
    search.refine = refine;
    return search;
  }
  bool same_as_less(size_t step, int64_t refine) const {
    return beam_refined > 0 && refine / 2 * beam_refined >= work[step];
  }
  int64_t usual_width() const { return walks ? kDefaultWidth : 0; }
  int64_t usual_refine() const { return refines.size() > 1 ? kDefaultRefine : 0; }
};

// 1, 2, 3, 4, 6, 8, 12, ... and the end.
std::vector<int64_t> steps_up_to(int64_t end) {
  std::vector<int64_t> steps{1};
  for (int64_t two = 2; two < end; two *= 2) {
    steps.push_back(two);
    if (two / 2 * 3 < end) steps.push_back(two / 2 * 3);
  }
  if (end > 1) steps.push_back(end);
  return steps;
}

std::vector<int64_t> beams_from(int64_t k) {
  std::vector<int64_t> beams{std::min(std::max(kMeasuredBeams[0], k), kWidestBeam)};
  for (const int64_t beam : kMeasuredBeams) {
    if (beam > beams.back()) beams.push_back(beam);
  }
  while (2 * beams.back() <= kWidestTunedBeam) beams.push_back(2 * beams.back());
  return beams;
}

TuneSpace space_of(const IndexVersion& version, const SearchUse& use, int64_t k) {
  IndexInfo info;
  version.state->describe(info, version.ids.live());
  TuneSpace space;
  space.walks = info.beam > 0;
  space.work = space.walks ? beams_from(k) : info.lists > 1 ? steps_up_to(info.lists) : std::vector<int64_t>{0};
  if (space.walks && !use.refines) space.beam_refined = k;
  if (space.walks) space.widths.assign(std::begin(kWidths), std::end(kWidths));
  if (space.walks || use.refines) space.refines.assign(std::begin(kRefines), std::end(kRefines));
  return space;
}

// Queries with their true neighbours, and searches for them.
class TuneBench {
 public:
  TuneBench(const IndexVersion& version, const MatrixView& queries, const TuneParams& params, bool larger_is_nearer,
            const Resources& resources)
      : state_(*version.state),
        filter_(version.ids.live().all() ? RowFilter() : version.ids.live().filter()),
        queries_(queries),
        on_host_(queries, resources),
        k_(params.k),
        true_k_(std::min(params.k, version.ids.live().count())),
        batch_(params.batch > 0 ? std::min(params.batch, queries.rows()) : queries.rows()),
        larger_(larger_is_nearer),
        resources_(resources),
        truth_(queries.rows(), params.k, resources),
        found_(queries.rows(), params.k, resources) {
    state_.search_all(queries_, truth_.view(), {.k = k_, .filter = filter_}, resources_);
  }

  int64_t compared(const TunedSearch& search) const {
    return state_.compared(on_host_.view(), params_of(search), resources_.with_progress({}));
  }

  // The first search makes copies and layouts, and does not count.
  void warm_up(const TunedSearch& search) { search_batch(search, 0); }

  // Measures a search, whose `compared` is known. Returns the number of correct neighbours.
  int64_t measure(int64_t compared, TunedSearch& search) {
    // Short searches are timed more than once, and the shortest counts.
    std::chrono::duration<double> took{HUGE_VAL};
    std::chrono::duration<double> all_rounds{0};
    for (int round = 0; round < kTimedRounds && all_rounds.count() < kTimedSeconds; ++round) {
      const auto began = std::chrono::steady_clock::now();
      for (int64_t first = 0; first < queries_.rows(); first += batch_) search_batch(search, first);
      const std::chrono::duration<double> round_took = std::chrono::steady_clock::now() - began;
      took = std::min(took, round_took);
      all_rounds += round_took;
    }
    int64_t total = 0;
    int64_t squares = 0;
    for (int64_t query = 0; query < queries_.rows(); ++query) {
      const int64_t right = right_of(query);
      total += right;
      squares += right * right;
    }
    const auto count = static_cast<double>(queries_.rows());
    const auto all = static_cast<double>(true_k_);
    search.recall = static_cast<double>(total) / (count * all);
    if (queries_.rows() > 1) {
      const double mean = static_cast<double>(total) / count;
      const double variance = (static_cast<double>(squares) - mean * static_cast<double>(total)) / (count - 1);
      search.standard_error = std::sqrt(std::max(0.0, variance) / count) / all;
    }
    search.compared = static_cast<double>(compared) / count;
    search.seconds = took.count() / count;
    return total;
  }

 private:
  SearchParams params_of(const TunedSearch& search) const {
    SearchParams params{.k = k_, .filter = filter_, .probes = search.probes, .refine = search.refine};
    params.beam = search.beam;
    params.width = search.width;
    return params;
  }

  void search_batch(const TunedSearch& search, int64_t first) {
    const int64_t count = std::min(batch_, queries_.rows() - first);
    const NeighborsView all = found_.view();
    const NeighborsView part{all.ids + first * k_, all.distances + first * k_, count, k_, all.space};
    state_.search(queries_.slice(first, count), part, params_of(search), resources_);
  }

  // A neighbour no farther than the last true one is correct, whichever row it is.
  int64_t right_of(int64_t query) const {
    const float last = truth_.distances(query)[true_k_ - 1];
    int64_t right = 0;
    for (int64_t i = 0; i < true_k_; ++i) {
      const float distance = found_.distances(query)[i];
      right += found_.ids(query)[i] >= 0 && (larger_ ? distance >= last : distance <= last) ? 1 : 0;
    }
    return right;
  }

  const IndexState& state_;
  const RowFilter filter_;
  const MatrixView queries_;
  const HostRows on_host_;
  const int64_t k_;
  const int64_t true_k_;
  const int64_t batch_;
  const bool larger_;
  const Resources resources_;
  Neighbors truth_;
  Neighbors found_;
};

std::vector<TunedSearch> measured_searches(const TuneSpace& space, TuneBench& bench, double recall, int64_t queries,
                                           const Resources& resources) {
  std::vector<TunedSearch> searches;
  bench.warm_up(space.at(0, space.usual_width(), space.usual_refine()));
  // For the requested recall: the step of the work and the fewest comparisons that reached it.
  size_t reached = space.work.size() - 1;
  double fewest = HUGE_VAL;
  const auto note = [&](const TunedSearch& search, size_t step) {
    searches.push_back(search);
    if (search.recall < recall || search.compared >= fewest) return;
    fewest = search.compared;
    reached = step;
  };
  std::vector<int64_t> right;
  for (size_t step = 0; step < space.work.size(); ++step) {
    resources.check_cancelled();
    TunedSearch search = space.at(step, space.usual_width(), space.usual_refine());
    right.push_back(bench.measure(bench.compared(search), search));
    note(search, step);
    if (search.recall >= std::max(recall, kNearlyAll)) break;
    if (step >= 2 && right[step] == right[step - 2]) break;  // twice the work finds nothing more
  }
  const size_t last = right.size() - 1;
  const size_t middle = std::min(reached, last);
  for (const int64_t width : space.widths) {
    for (const int64_t refine : space.refines) {
      if (width == space.usual_width() && refine == space.usual_refine()) continue;
      for (size_t step = middle - std::min(middle, kStepsBack); step <= last; ++step) {
        if (space.same_as_less(step, refine)) continue;
        resources.check_cancelled();
        TunedSearch search = space.at(step, width, refine);
        const int64_t compared = bench.compared(search);
        if (static_cast<double>(compared) >= fewest * static_cast<double>(queries)) break;
        bench.measure(compared, search);
        note(search, step);
        if (search.recall >= recall) break;
      }
    }
  }
  std::sort(searches.begin(), searches.end(), [](const TunedSearch& a, const TunedSearch& b) {
    return std::tuple(a.compared, -a.recall, a.beam, a.width, a.probes, a.refine) <
           std::tuple(b.compared, -b.recall, b.beam, b.width, b.probes, b.refine);
  });
  return searches;
}

}  // namespace

void TuneParams::validate() const {
  if (k < 1) throw InvalidArgument(fmt::format("k = {}; at least one neighbour must be asked for", k));
  if (!(recall > 0 && recall <= 1)) {
    throw InvalidArgument(fmt::format("recall = {}; it must be above 0 and at most 1", recall));
  }
  if (batch < 0)
    throw InvalidArgument(fmt::format("batch = {}; it is at least 1, or 0 for all queries at once", batch));
}

TuneReport Index::tune(const MatrixView& queries, const TuneParams& params, const Resources& given) {
  params.validate();
  const Resources resources = impl_->on_device(given);
  const IndexPublisher::Writer writer(impl_->versions);
  const std::shared_ptr<const IndexVersion> version = impl_->versions.current();
  impl_->refuse_untrained(version.get(), "it is tuned");
  if (rows_of(version.get()) == 0) throw InvalidState("the index holds no vectors to search; add some before tune()");
  check_queries(version->state->content(), queries, impl_->params.metric);
  if (queries.rows() < 1) throw InvalidArgument("tune() needs queries, some hundreds that are like those to come");
  TuneReport report;
  report.table.k = params.k;
  report.table.rows = rows_of(version.get());
  within_limits("tuning", resources, [&](const Resources& used) {
    const NarrowedRows narrowed("queries", queries, version->offset, OfRounding::silent, used);
    const TuneSpace space = space_of(*version, impl_->kind->search_use(), params.k);
    const bool larger = larger_is_nearer(impl_->params.metric);
    TuneBench bench(*version, narrowed.view(), params, larger, used);
    if (!counts_only(used)) {
      report.table.searches = measured_searches(space, bench, params.recall, queries.rows(), used);
      return;
    }
    // A search with much work may be exact, which can take less memory than one with little.
    for (size_t step = 0; step < space.work.size(); ++step) {
      const TunedSearch most = space.at(step, space.widths.back(), space.refines.back());
      bench.warm_up(most);
      (void)bench.compared(most);
    }
  });
  const auto& all = report.table.searches;
  const TunedSearch* const found = report.table.find(params.recall);
  report.reached = found != nullptr;
  report.chosen = report.reached ? *found : *std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.recall < b.recall;
  });
  const auto table = std::make_shared<const TuneTable>(report.table);
  impl_->versions.publish(
      writer,
      [&](const IndexVersion* current) {
        IndexVersion after = *current;
        after.tuned = table;
        return after;
      },
      resources);
  return report;
}

}  // namespace kith
