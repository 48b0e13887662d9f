// Refinement: an index finds more candidates than requested, which are then compared with more precise vectors: the
// originals, or finer codes of them.
//
// The result is the first k of a query's candidates by (distance of knn() to the precise vector, row). This is for the
// host; refine_gpu.hpp is for a GPU that holds the vectors.
//
// Memory: 12 bytes per candidate for a batch of queries, and a block of vectors for each
// thread.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "index/index_state.hpp"

#include <cstdint>

namespace kith {

// The source of the precise vectors.
class RefineVectors {
 public:
  virtual ~RefineVectors() = default;
  // Writes the vectors of these rows as f32, count x the columns of the queries. Thread-safe.
  virtual void fetch(const int64_t* rows, int64_t count, float* out) const = 0;
};

inline constexpr int64_t kDefaultRefine = 4;  // times k

// The first search of a refinement.
struct RefineTask {
  // Asks for params.refine times k candidates, `usual` times k if it is 0, or all rows if there are fewer.
  RefineTask(const IndexState& state, const SearchParams& params, int64_t usual, int64_t rows, Metric metric);

  const IndexState& first;  // finds the candidates
  SearchParams coarse;      // with these parameters
  Metric metric;
};

// Queries of any dtype. Results are row numbers.
void search_and_refine(const RefineTask& task, const RefineVectors& vectors, const MatrixView& queries,
                       const NeighborsView& out, const Resources& resources);

// Keeps the results of a range search, in host memory, that are within the radius by these vectors as well.
RangeNeighbors refine_range(const RefineVectors& vectors, Metric metric, float radius, const MatrixView& queries,
                            RangeNeighbors near, const Resources& resources);

}  // namespace kith
