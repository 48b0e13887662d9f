// Checks of rows and results that all searches share.
#pragma once

#include <kith/knn.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

// Throws unless the metric compares rows of that type; `what` is plural.
void check_rows_dtype(std::string_view what, DType dtype, Metric metric);
// For user-defined metrics, which an offset or rounding might change.
void refuse_f64(std::string_view what, DType dtype);

void check_host_readable(std::string_view what, const MatrixView& view);
void check_output(const NeighborsView& out, int64_t queries, int64_t k);

// Logs a warning if the base has fewer than k rows: most often it was swapped with the queries.
void warn_of_short_base(int64_t queries, int64_t rows, int64_t k, const Resources& resources);

// Fills the results with padding.
void write_nothing(Metric metric, const NeighborsView& out);

}  // namespace kith
