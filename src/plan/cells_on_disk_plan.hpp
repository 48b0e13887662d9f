// The phases of building a graph by cells from disk, on the CPU or a GPU: sample, centres, rows sorted by cell,
// comparison of blocks of neighbouring cells with all others, and lists in the order of rows.
#pragma once

#include <kith/work_plan.hpp>

#include "graph/build/method/method_choice.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// The question as the input for the choice of the method.
GraphProblem graph_problem(const PlanQuestion& question);
// The size of the graph's files.
int64_t graph_result_bytes(const PlanQuestion& question);

// The counts from which the phases follow.
struct CellsOnDiskCounts {
  int64_t cells = 0;
  double probes = 0;
  int64_t blocks = 1;     // of rows that are compared at a time
  int64_t row_bytes = 0;  // of a row in a bucket: with its number
};
// The counts that the engine would probably choose.
CellsOnDiskCounts likely_cells_on_disk(const PlanQuestion& question);

std::vector<PlanPhase> plan_cells_on_disk(const PlanQuestion& question, const CellsOnDiskCounts& cells);

}  // namespace kith
