// A second look at candidates: an index finds more of them than were asked for, and those are compared again with other
// vectors, the original ones or finer codes of them, wherever these are kept.
//
// What is found: of the candidates that the first search returns for a query, the first k by (distance of knn() to the
// other vector, row). Here on the host; refine_gpu.hpp does it on a GPU that has the vectors.
//
// Memory: 12 bytes a candidate of the queries that are searched together, as many as fit well, and for each thread a
// block of vectors.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "index/index_state.hpp"

#include <cstdint>

namespace kith {

// Where the other vectors are.
class RefineVectors {
 public:
  virtual ~RefineVectors() = default;
  // The vectors of these rows as f32, count x the columns of the queries. From any thread.
  virtual void fetch(const int64_t* rows, int64_t count, float* out) const = 0;
};

inline constexpr int64_t kDefaultRefine = 4;  // times k

// What a second look begins with.
struct RefineTask {
  // Looks at params.refine times k candidates, `usual` times k if it is 0, or all rows if these are fewer.
  RefineTask(const IndexState& state, const SearchParams& params, int64_t usual, int64_t rows, Metric metric);

  const IndexState& first;  // that finds the candidates,
  SearchParams coarse;      // so many
  Metric metric;
};

// Queries of any dtype. What is found are rows.
void search_and_refine(const RefineTask& task, const RefineVectors& vectors, const MatrixView& queries,
                       const NeighborsView& out, const Resources& resources);

// Keeps what is within the radius by these vectors too, of a range result in host memory. `near` is used up.
RangeNeighbors refine_range(const RefineVectors& vectors, Metric metric, float radius, const MatrixView& queries,
                            RangeNeighbors near, const Resources& resources);

}  // namespace kith
