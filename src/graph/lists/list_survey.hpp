// One pass over all lists after a round: what changed, and the sum of all distances (GNND's equation 3).
//
// Sums are added in an order fixed by the row numbers. Neighbours that have come since the last survey are those without
// the flag of old ones.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include "graph/lists/working_lists.hpp"

#include <cstdint>

namespace kith {

struct ListSurvey {
  double phi = 0;       // of the first k of each list
  int64_t updates = 0;  // neighbours without the flag
};

enum class Flags : uint8_t { keep, set, clear };

// And leaves all neighbours with the flag, without it, or as they are.
ListSurvey survey_lists(const WorkingLists& lists, int64_t k, Metric metric, Flags flags, const Resources& resources);

}  // namespace kith
