// Exact search with one filter per query. Queries with equal filters are searched together; the results are the same
// bytes as in a loop over the queries.
#pragma once

#include <kith/export.hpp>
#include <kith/knn.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/view.hpp>

#include <span>

namespace kith {

// `filters`: one per query. InvalidArgument that names the query if a filter is for another number of rows, and if
// params.filter is given as well. Otherwise as in kith/knn.hpp.
KITH_EXPORT Neighbors knn(const MatrixView& queries, const MatrixView& base, std::span<const RowFilter> filters,
                          const KnnParams& params = {}, const Resources& resources = Resources());
// The same into the caller's arrays.
KITH_EXPORT void knn(const MatrixView& queries, const MatrixView& base, std::span<const RowFilter> filters,
                     const NeighborsView& out, const KnnParams& params, const Resources& resources = Resources());

}  // namespace kith
