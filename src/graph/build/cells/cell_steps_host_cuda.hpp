// Waves of cells of a collection on a GPU by a metric that is no product: the CPU compares, and the lists go to and
// fro.
//
// The GPU's waves are products. What cells begin NN-Descent with is little by other metrics, and must be the same
// bytes. Memory on the host: the rows, the lists, and what the CPU's steps take.
#pragma once

#include "graph/build/cells/cell_steps.hpp"
#include "graph/lists/graph_lists_cuda.hpp"

#include <memory>

namespace kith {

// What is given must outlive it.
std::unique_ptr<CellSteps> make_cell_steps_on_host(const GraphListsCuda& lists, const CellParams& params);

}  // namespace kith
