// The exact k-NN graph, by searching for k + 1 neighbours of every row and removing the row itself.
//
// The first k + 1 of all rows contain the first k of all others, whether or not they contain the row itself, which may
// come after its duplicates. Cost: rows^2 distances; memory is that of the search.
#pragma once

#include <kith/knn_graph.hpp>

namespace kith {

class GraphShare;

// Checks that the number of neighbours is representable.
void check_graph_size(int64_t rows, int64_t k);

void exact_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                 const Resources& resources);
// The same by ranks: each searches for its rows and fills all of its `out`, in host memory. Parts of a process share
// one writable `out`.
void exact_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params, const GraphShare& share,
                 const Resources& resources);

}  // namespace kith
