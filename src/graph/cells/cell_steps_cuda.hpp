// Waves of a graph by cells on a GPU.
#pragma once

#include "cuda/device_context.hpp"
#include "graph/cells/cell_params.hpp"
#include "graph/cells/cell_steps.hpp"
#include "graph/control_rows.hpp"
#include "graph/graph_rows_cuda.hpp"
#include "graph/list_passes_cuda.hpp"

#include <memory>

namespace kith {

// Cuts the rows into cells; the waves write the lists. What is given must outlive it, but for the control rows, which tell
// how many probes are likely to be made.
std::unique_ptr<CellSteps> make_cell_steps_cuda(const GraphRowsCuda& rows, const CellParams& params,
                                                const ControlRows& control, const DeviceWorkingLists& lists,
                                                std::shared_ptr<const DeviceContext> context,
                                                const Resources& resources);

}  // namespace kith
