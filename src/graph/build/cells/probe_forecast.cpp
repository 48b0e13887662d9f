#include "graph/build/cells/probe_forecast.hpp"

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kPairsAtOnce = 65536;  // of a control row and one near it

// A control row and a row as near as its last neighbour.
struct NearPair {
  uint32_t control;
  uint32_t row;
};

class Forecast {
 public:
  Forecast(const ControlRows& control, const ControlTies& ties, CellPlaces& places, const Resources& resources)
      : control_(control),
        ties_(ties),
        places_(places),
        resources_(resources.with_progress({})),
        meter_("foresee", static_cast<int64_t>(control.rows().size()), resources),
        alone_(static_cast<size_t>(places.cells()), 0),
        with_ties_(alone_) {}

  void follow_control_rows() {
    const auto count = static_cast<int64_t>(control_.rows().size());
    for (int64_t i = 0; i < count; ++i) {
      if (!control_.has_ties(i)) add_pairs(static_cast<uint32_t>(i), control_.neighbors(i), control_.k(), alone_);
    }
    follow_pairs(alone_);
    meter_.add(count - ties_.tied());
    for (size_t i = 0; i < ties_.searched().size(); ++i) {
      add_pairs(ties_.searched()[i], ties_.near(static_cast<int64_t>(i)), ties_.most_near(), with_ties_);
    }
    follow_pairs(with_ties_);
    meter_.add(ties_.tied());
    meter_.finish();
  }

  int64_t probes_for(double recall) const {
    const auto control_rows = static_cast<int64_t>(control_.rows().size());
    const auto searched = static_cast<int64_t>(ties_.searched().size());
    int64_t alone = 0;
    int64_t with_ties = 0;
    for (int64_t probe = 0; probe < places_.cells(); ++probe) {
      alone += alone_[static_cast<size_t>(probe)];
      with_ties += with_ties_[static_cast<size_t>(probe)];
      const int64_t found = alone + (searched > 0 ? with_ties * ties_.tied() / searched : 0);
      if (control_.recall_of(std::min(found, control_rows * control_.k())) >= recall) return probe + 1;
    }
    return places_.cells();
  }

  // What a batch takes at most.
  void count_memory() {
    const auto control_rows = static_cast<int64_t>(control_.rows().size());
    const int64_t pairs = std::min(std::max(kPairsAtOnce, ties_.most_near()), control_rows * ties_.most_near());
    const std::vector<uint32_t> rows(static_cast<size_t>(std::min(pairs + control_rows, ties_.all_rows())), 0);
    const std::vector<PlaceQuestion> questions(static_cast<size_t>(2 * pairs));
    const HostArray<uint32_t> own(static_cast<int64_t>(rows.size()), "rows near the control rows", resources_);
    const HostArray<uint32_t> found(2 * pairs, "rows near the control rows", resources_);
    places_.find_own(rows, own.data());
    places_.find_places(rows, {own.data(), rows.size()}, questions, found.data());
  }

 private:
  // Adds a control row and up to `most` rows near it; afterwards there is room for another row's.
  void add_pairs(uint32_t control, std::span<const uint32_t> near, int64_t most, std::vector<int64_t>& found) {
    for (const uint32_t row : near) pairs_.push_back({control, row});
    if (static_cast<int64_t>(pairs_.size()) + most > kPairsAtOnce) follow_pairs(found);
  }

  // Adds to `found` what each probe finds of the pairs, which are whole control rows', and forgets them.
  void follow_pairs(std::vector<int64_t>& found) {
    if (pairs_.empty()) return;
    std::vector<uint32_t> rows;     // of both sides, each once
    std::vector<NearPair> numbers;  // of both sides of a pair, in `rows`
    number_rows(rows, numbers);
    const HostArray<uint32_t> own(static_cast<int64_t>(rows.size()), "rows near the control rows", resources_);
    places_.find_own(rows, own.data());

    // Pairs of one cell are found by the first probe. Where that is all that is counted of a control row, nothing is
    // asked: equal rows are often many.
    std::vector<int64_t> together(control_.rows().size(), 0);
    std::vector<PlaceQuestion> questions;
    std::vector<uint32_t> asked;  // pairs
    for (size_t i = 0; i < pairs_.size(); ++i) {
      together[pairs_[i].control] += own[numbers[i].control] == own[numbers[i].row] ? 1 : 0;
    }
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const auto [there, back] = numbers[i];
      if (own[there] == own[back] || together[pairs_[i].control] >= control_.k()) continue;
      asked.push_back(static_cast<uint32_t>(i));
      questions.push_back({there, own[back]});
      questions.push_back({back, own[there]});
    }
    put_found(asked, places_of(rows, own, questions), together, found);
    meter_.poll();
    pairs_.clear();
  }

  // The rows of all pairs in ascending order, each once, and their numbers in it, by a sort of (row, side of a pair).
  void number_rows(std::vector<uint32_t>& rows, std::vector<NearPair>& numbers) const {
    std::vector<uint64_t> sides;
    sides.reserve(2 * pairs_.size());
    for (const NearPair& pair : pairs_) {
      sides.push_back(uint64_t{control_.rows()[pair.control]} << 32 | sides.size());
      sides.push_back(uint64_t{pair.row} << 32 | sides.size());
    }
    const std::vector<uint64_t> sorted = sort_by_high_half(std::move(sides));
    numbers.resize(pairs_.size());
    for (const uint64_t side : sorted) {
      const auto row = static_cast<uint32_t>(side >> 32);
      if (rows.empty() || rows.back() != row) rows.push_back(row);
      const auto at = static_cast<uint32_t>(side);
      NearPair& pair = numbers[at / 2];
      (at % 2 == 0 ? pair.control : pair.row) = static_cast<uint32_t>(rows.size() - 1);
    }
  }

  // Stable; in three passes of 11 bits.
  static std::vector<uint64_t> sort_by_high_half(std::vector<uint64_t> values) {
    constexpr int kBits = 11;
    constexpr uint64_t kDigits = uint64_t{1} << kBits;
    std::vector<uint64_t> sorted(values.size());
    for (int shift = 32; shift < 64; shift += kBits) {
      std::array<size_t, kDigits + 1> starts = {};
      for (const uint64_t value : values) ++starts[(value >> shift) % kDigits + 1];
      std::partial_sum(starts.begin(), starts.end(), starts.begin());
      for (const uint64_t value : values) sorted[starts[(value >> shift) % kDigits]++] = value;
      values.swap(sorted);
    }
    return values;
  }

  // The answers, in the order of the questions, which are asked by ascending row.
  std::vector<uint32_t> places_of(const std::vector<uint32_t>& rows, const HostArray<uint32_t>& own,
                                  const std::vector<PlaceQuestion>& questions) {
    std::vector<uint64_t> order;
    order.reserve(questions.size());
    for (const PlaceQuestion& question : questions) order.push_back(uint64_t{question.row} << 32 | order.size());
    order = sort_by_high_half(std::move(order));
    std::vector<PlaceQuestion> sorted;
    sorted.reserve(order.size());
    for (const uint64_t at : order) sorted.push_back(questions[static_cast<uint32_t>(at)]);
    const HostArray<uint32_t> answers(static_cast<int64_t>(sorted.size()), "rows near the control rows", resources_);
    if (!sorted.empty()) places_.find_places(rows, {own.data(), rows.size()}, sorted, answers.data());
    std::vector<uint32_t> places(questions.size());
    for (size_t i = 0; i < order.size(); ++i) {
      places[static_cast<uint32_t>(order[i])] = answers[static_cast<int64_t>(i)];
    }
    return places;
  }

  // `places`: two of each pair that was asked for. A list holds k rows: the first k that are found of a control row
  // count.
  void put_found(const std::vector<uint32_t>& asked, const std::vector<uint32_t>& places,
                 const std::vector<int64_t>& together, std::vector<int64_t>& found) const {
    for (const int64_t count : together) found[0] += std::min(count, control_.k());
    std::vector<NearPair> at;  // the probe that finds each pair, in the place of the row
    for (size_t i = 0; i < asked.size(); ++i) {
      at.push_back({pairs_[asked[i]].control, std::min(places[2 * i], places[2 * i + 1])});
    }
    // Pairs come by control row: what is left is to sort those of each.
    for (auto first = at.begin(); first != at.end();) {
      const auto end =
          std::find_if(first, at.end(), [&](const NearPair& one) { return one.control != first->control; });
      std::sort(first, end, [](const NearPair& a, const NearPair& b) { return a.row < b.row; });
      first = end;
    }
    int64_t taken = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      taken = i > 0 && at[i].control == at[i - 1].control ? taken + 1 : together[at[i].control];
      if (taken < control_.k()) ++found[at[i].row];
    }
  }

  const ControlRows& control_;
  const ControlTies& ties_;
  CellPlaces& places_;
  const Resources resources_;
  ProgressMeter meter_;
  std::vector<NearPair> pairs_;
  // Neighbours that each probe finds of control rows without ties, and of those whose ties were searched.
  std::vector<int64_t> alone_;
  std::vector<int64_t> with_ties_;
};

}  // namespace

ProbeForecast foresee_probes(double recall, const ControlRows& control, const ControlTies& ties, CellPlaces& places,
                             const Resources& resources) {
  constexpr double kMostOfThem = 0.8;
  if (control.rows().empty()) return {};
  Forecast forecast(control, ties, places, resources);
  if (counts_only(resources)) {
    forecast.count_memory();
    return {};
  }
  forecast.follow_control_rows();
  return {forecast.probes_for(recall), forecast.probes_for(kMostOfThem), ties.mean_near(), ties.is_crowded()};
}

}  // namespace kith
