// The exact k-NN graph, by searching every row for k + 1 neighbours and leaving itself out.
//
// The k + 1 first of all rows hold the k first of all others whether or not the row itself, which its duplicates may
// precede, is among them. Cost: rows^2 distances; memory is that of the search.
#pragma once

#include <kith/knn_graph.hpp>

namespace kith {

class GraphShare;

// That so many neighbours can be counted.
void check_graph_size(int64_t rows, int64_t k);

void exact_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                 const Resources& resources);
// The same by ranks, each of which searches for its rows and fills all of its `out`, in host memory. Parts of one process
// fill one `out`, which they can write to.
void exact_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params, const GraphShare& share,
                 const Resources& resources);

}  // namespace kith
