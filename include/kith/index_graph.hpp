// The k-NN graph of an index's own vectors, found by searching the index: with compressed vectors, for up to a billion
// (section 6.5 of "Billion-scale similarity search with GPUs").
//
// Neighbours and distances are those of a search, without the row itself: if the index stores codes, a distance is that
// between a vector and the code of another. knn_graph() of vectors (kith/knn_graph.hpp) compares the vectors
// themselves, and is faster if they fit in memory.
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
  uint64_t seed = 0;   // draws the 1,000 rows on which the recall in the report is measured

  KITH_EXPORT void validate() const;
};

// `x`: the vectors of the index, on the host or a CUDA device; row i is the vector with id i. InvalidArgument if the
// index has another number of vectors or other ids. The graph is stored where `x` is. Memory: 12 bytes per row and
// neighbour, and that of a search.
KITH_EXPORT KnnGraph knn_graph(const Index& index, const MatrixView& x, const IndexGraphParams& params = {},
                               const Resources& resources = Resources());

// The same into the caller's rows x k arrays, in any memory that a search of `x` may write to.
KITH_EXPORT GraphReport knn_graph(const Index& index, const MatrixView& x, const NeighborsView& out,
                                  const IndexGraphParams& params, const Resources& resources = Resources());

}  // namespace kith
