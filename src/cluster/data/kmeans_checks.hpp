// Checks of arguments before k-means plans.
#pragma once

#include <kith/kmeans.hpp>

#include "exact/search_checks.hpp"

#include <string_view>

namespace kith {

// Throws unless rows can be widened to f32 and their number fits row numbers.
void check_kmeans_rows(std::string_view what, const RowsInfo& rows);

// Throws unless there are enough rows for the clusters, and weights and centres fit the rows.
void check_kmeans_input(const KMeansParams& params, const RowsInfo& rows, const KMeansInput& input);

// The first row that holds a NaN or an infinity, or -1.
int64_t first_not_finite(const MatrixView& rows, const Resources& resources);
int64_t first_not_finite_cuda(const MatrixView& rows, const Resources& resources);  // in a GPU's memory
// Throws InvalidArgument that names that row, counted from `first`.
void check_rows_finite(const MatrixView& rows, int64_t first, const Resources& resources);

}  // namespace kith
