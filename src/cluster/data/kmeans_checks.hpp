// What k-means checks before it plans.
#pragma once

#include <kith/kmeans.hpp>

#include "exact/search_checks.hpp"

#include <string_view>

namespace kith {

// Rows that can be widened to f32, and as many as row numbers reach.
void check_kmeans_rows(std::string_view what, const RowsInfo& rows);

// That so many rows can be clustered, with weights and centres that fit them.
void check_kmeans_input(const KMeansParams& params, const RowsInfo& rows, const KMeansInput& input);

// The first row that holds a NaN or an infinity, or -1.
int64_t first_not_finite(const MatrixView& rows, const Resources& resources);
int64_t first_not_finite_cuda(const MatrixView& rows, const Resources& resources);  // in a GPU's memory
// InvalidArgument, naming that row, counted from `first`.
void check_rows_finite(const MatrixView& rows, int64_t first, const Resources& resources);

}  // namespace kith
