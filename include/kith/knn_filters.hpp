// Exact search with a filter for each query: queries with equal filters are searched together, and results are the bytes
// of a loop over the queries.
#pragma once

#include <kith/export.hpp>
#include <kith/knn.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/view.hpp>

#include <span>

namespace kith {

// `filters`: one for each query. InvalidArgument that names the query where one is for another number of rows, or where
// params.filter is given too. Otherwise as in kith/knn.hpp.
KITH_EXPORT Neighbors knn(const MatrixView& queries, const MatrixView& base, std::span<const RowFilter> filters,
                          const KnnParams& params = {}, const Resources& resources = Resources());
// The same into the caller's arrays.
KITH_EXPORT void knn(const MatrixView& queries, const MatrixView& base, std::span<const RowFilter> filters,
                     const NeighborsView& out, const KnnParams& params, const Resources& resources = Resources());

}  // namespace kith
