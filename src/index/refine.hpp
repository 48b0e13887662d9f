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

#include <cstdint>
#include <functional>

namespace kith {

// Where the other vectors are.
class RefineVectors {
 public:
  virtual ~RefineVectors() = default;
  // The vectors of these rows as f32, count x the columns of the queries. From any thread.
  virtual void fetch(const int64_t* rows, int64_t count, float* out) const = 0;
};

inline constexpr int64_t kDefaultRefine = 4;  // times k

// How many candidates a query has: `factor` times k, or all rows where these are fewer.
int64_t candidates_for(int64_t factor, int64_t k, int64_t rows);

struct RefineTask {
  const RefineVectors& vectors;
  Metric metric = Metric::l2;
  int64_t candidates = 0;  // of a query, at least out.k
};

// Rows near some queries to room for task.candidates of each, padded: the first search.
using CandidateSearch =
    std::function<void(const MatrixView& queries, const NeighborsView& candidates, const Resources& resources)>;

// Queries of any dtype, and `out`, are in host memory. What is found are rows.
void search_and_refine(const RefineTask& task, const CandidateSearch& search, const MatrixView& queries,
                       const NeighborsView& out, const Resources& resources);

// Of what was found within a radius, in host memory, that which is within it by these vectors too. `near` is used up.
RangeNeighbors refine_range(const RefineVectors& vectors, Metric metric, float radius, const MatrixView& queries,
                            RangeNeighbors near, const Resources& resources);

}  // namespace kith
