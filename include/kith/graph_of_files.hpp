// The k-NN graph of vectors in files: one, several by a pattern, or rows from elsewhere (VectorFile). The rows are read
// into memory, which counts against the limit, beside what the graph takes.
#pragma once

#include <kith/export.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

namespace kith {

KITH_EXPORT KnnGraph knn_graph(const VectorFile& x, const KnnGraphParams& params = {},
                               const Resources& resources = Resources());

// The neighbours of every row into the caller's rows x k arrays.
KITH_EXPORT GraphReport knn_graph(const VectorFile& x, const NeighborsView& out, const KnnGraphParams& params,
                                  const Resources& resources = Resources());

}  // namespace kith
