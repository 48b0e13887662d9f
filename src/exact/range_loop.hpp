// The loop of a range search: batches of queries, pieces of the base, results out as they are counted.
#pragma once

#include <kith/range_search.hpp>

#include "exact/exact_search.hpp"
#include "exact/knn_checks.hpp"

namespace kith {

// The problem of finding candidates for a range search. InvalidArgument or Unsupported where it cannot be.
KnnProblem check_range(const RowsInfo& queries, const RowsInfo& base, const RangeParams& params);

RangeNeighbors search_range(KnnProblem problem, float radius, const SearchInput& input, const Resources& resources);
void search_range(KnnProblem problem, float radius, const SearchInput& input, const RangeSink& sink,
                  const Resources& resources);

}  // namespace kith
