// The k-NN graph of an index's own rows: every row is searched in the index (section 6.5 of "Billion-scale similarity search
// with GPUs"), as fast and as good as its searches are.
//
// Distances are those that the index tells: to what it keeps of a vector, its code or the vector itself.
#pragma once

#include <kith/export.hpp>
#include <kith/index.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

namespace kith {

// Row i of `x` is the vector with the id i, and the index holds no others: InvalidArgument where their numbers differ, or
// an id is found that is no row. `params` are those of the searches, k the graph's. The graph is on the host; `x` may lie in
// the memory of a GPU. How good it is, measure_recall() tells.
KITH_EXPORT KnnGraph knn_graph(const Index& index, const MatrixView& x, const SearchParams& params = {},
                               const Resources& resources = Resources());

}  // namespace kith
