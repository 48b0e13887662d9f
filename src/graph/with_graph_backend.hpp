// The backend of the device that was chosen, over checked rows, with their control rows.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "graph/graph_backend_cuda.hpp"

#include <functional>

namespace kith {

// Calls use(backend), which is gone afterwards. The resources' device is not automatic, and holds the rows or can be
// given a copy.
void with_graph_backend(const MatrixView& x, const GraphRowsWish& rows, const Resources& resources,
                        const std::function<void(GraphBackend&)>& use);

}  // namespace kith
