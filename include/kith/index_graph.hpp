// The k-NN graph of a collection by searching an index for its own vectors: of a billion where the index is compressed
// (section 6.5 of "Billion-scale similarity search with GPUs").
//
// Neighbours and distances are those that a search of the index reports, less the row itself: with codes, distances are
// those between a vector and the codes of others. knn_graph() of the vectors alone (kith/knn_graph.hpp) compares vectors
// themselves, and is faster where they fit in memory.
#pragma once

#include <kith/export.hpp>
#include <kith/index.hpp>
#include <kith/knn_graph.hpp>

#include <cstdint>

namespace kith {

struct IndexGraphParams {
  int64_t k = 15;
  int64_t probes = 0;  // as in SearchParams
  int64_t refine = 0;  // as in SearchParams
  const VectorFile* refine_from = nullptr;  // as in SearchParams
  uint64_t seed = 0;   // of the 1,000 rows on which the recall in the report is measured

  KITH_EXPORT void validate() const;
};

// `x`: the vectors of the index, row i that with id i, on the host or a CUDA device. InvalidArgument where their number is
// not that of the index, or some row's id is not its number. The graph lies where `x` does. Memory: 12 bytes per row and
// neighbour, and what a search takes.
KITH_EXPORT KnnGraph knn_graph(const Index& index, const MatrixView& x, const IndexGraphParams& params = {},
                               const Resources& resources = Resources());

// The same into the caller's rows x k arrays, which lie where a search of `x` may write.
KITH_EXPORT GraphReport knn_graph(const Index& index, const MatrixView& x, const NeighborsView& out,
                                  const IndexGraphParams& params, const Resources& resources = Resources());

}  // namespace kith
