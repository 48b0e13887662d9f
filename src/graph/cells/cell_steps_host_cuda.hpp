// Waves of cells of a collection on a GPU by a metric that is no product: the CPU compares, and the lists go to and fro.
//
// The GPU's waves are products. What cells begin NN-Descent with is little by other metrics, and must be the same bytes.
// Memory on the host: the rows, the lists, and what the CPU's steps take.
#pragma once

#include "graph/cells/cell_params.hpp"
#include "graph/cells/cell_steps.hpp"
#include "graph/graph_rows_cuda.hpp"
#include "graph/list_passes_cuda.hpp"

#include <memory>

namespace kith {

// What is given must outlive it.
std::unique_ptr<CellSteps> make_cell_steps_on_host(const GraphRowsCuda& rows, const CellParams& params,
                                                   const DeviceWorkingLists& lists,
                                                   std::shared_ptr<const DeviceContext> context,
                                                   const Resources& resources);

}  // namespace kith
