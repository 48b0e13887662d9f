// The phases of a graph by cells whose rows do not fit into memory, on the CPU or a GPU: sample, centres, rows put in the order
// of cells, blocks of neighbouring cells that are compared with all others, and lists in the order of rows.
#pragma once

#include <kith/work_plan.hpp>

#include "graph/build/method/method_choice.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// The question in the form that the choice of method takes.
GraphProblem graph_problem(const PlanQuestion& question);

// What the phases are counted from.
struct CellsOnDiskCounts {
  int64_t cells = 0;
  double probes = 0;
  int64_t blocks = 1;     // of rows that are compared at a time
  int64_t row_bytes = 0;  // of a row in a bucket: with its number
};
// As the engine would choose them for this question.
CellsOnDiskCounts likely_cells_on_disk(const PlanQuestion& question);

std::vector<PlanPhase> plan_cells_on_disk(const PlanQuestion& question, const CellsOnDiskCounts& cells);

}  // namespace kith
