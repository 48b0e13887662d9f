// What a build by rounds leaves beside its lists.
#pragma once

#include <kith/graph_report.hpp>

#include "graph/control_rows.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kith {

struct BuildOutcome {
  std::vector<GraphRound> rounds;
  std::optional<RecallEstimate> recall;
  bool reached = true;  // the recall that was wanted, if one was
  int64_t probes = 0;   // made, by cells
};

}  // namespace kith
