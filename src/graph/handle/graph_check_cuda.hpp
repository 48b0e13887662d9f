// The rules of graph_check.hpp on a GPU, where the graph lies: a warp for each row, one read of it.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>

#include <cstdint>

namespace kith {

// Rows of so many neighbours fit the memory of a warp.
inline constexpr int64_t kMostCheckedThere = 8192;

// The first row that breaks a rule, or rows(). The graph lies in a device's memory, has up to INT32_MAX rows and up to
// kMostCheckedThere neighbours. Works on the resources' stream, and waits.
int64_t first_wrong_row_cuda(const KnnGraph& graph, const Resources& resources);

}  // namespace kith
