// What a build by rounds leaves beside its lists.
#pragma once

#include <kith/graph_report.hpp>
#include <kith/resources.hpp>

#include "graph/lists/control_rows.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kith {

struct BuildOutcome {
  std::vector<GraphRound> rounds;
  std::optional<RecallEstimate> recall;
  bool reached = true;  // the recall that was wanted, if one was
  int64_t probes = 0;   // made, by cells
};

// What rounds have to say.
void put_outcome(const BuildOutcome& outcome, int64_t control_rows, GraphReport& report);
// A warning where the recall that was wanted is not reached.
void warn_if_missed(const GraphReport& report, double wanted, std::string_view advice, const Resources& resources);

// Where every pair was compared.
inline GraphRecall exact_recall(int64_t rows) {
  return {.recall = 1, .recall_at_10 = 1, .standard_error = 0, .rows = rows};
}

}  // namespace kith
