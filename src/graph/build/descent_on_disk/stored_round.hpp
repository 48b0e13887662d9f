// A round of a report as steps of work keep it.
#pragma once

#include <kith/graph_report.hpp>

#include <cstdint>
#include <optional>

namespace kith {

struct StoredRound {
  double recall = 0;
  int64_t has_recall = 0;
  double phi = 0;
  int64_t updates = 0;
  int64_t comparisons = 0;
  double seconds = 0;

  StoredRound() = default;
  explicit StoredRound(const GraphRound& round)
      : recall(round.recall.value_or(0)),
        has_recall(round.recall ? 1 : 0),
        phi(round.phi),
        updates(round.updates),
        comparisons(round.comparisons),
        seconds(round.seconds) {}

  GraphRound told() const {
    const std::optional<double> measured = has_recall != 0 ? std::optional(recall) : std::nullopt;
    return {.recall = measured, .phi = phi, .updates = updates, .comparisons = comparisons, .seconds = seconds};
  }
};

}  // namespace kith
