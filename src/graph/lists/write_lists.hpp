// Working lists become the arrays that the caller gets.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include "graph/lists/working_lists.hpp"

namespace kith {

// The first k of every list; padding where a list is shorter.
void write_lists(const WorkingLists& lists, Metric metric, const NeighborsView& out, const Resources& resources);

}  // namespace kith
