// A graph's edges and their ways back as one matrix.
#pragma once

#include <kith/csr_matrix.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>

namespace kith {

// `in_both`: those alone whose way back is an edge too. The graph is checked, and lies on the host.
CsrMatrix both_ways(const KnnGraph& graph, bool in_both, const Resources& resources);

}  // namespace kith
