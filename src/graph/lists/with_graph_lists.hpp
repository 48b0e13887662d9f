// The lists of the device that was chosen, over checked rows, with their control rows.
#pragma once

#include "graph/lists/graph_lists.hpp"

#include <functional>

namespace kith {

// Calls use(lists) with lists on the resources' device, over checked rows; they are gone afterwards. The device is not
// automatic, and holds the rows or can be given a copy.
void with_graph_lists(const MatrixView& x, const GraphRowsWish& rows, const Resources& resources,
                      const std::function<void(GraphLists&)>& use);

}  // namespace kith
