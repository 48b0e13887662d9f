// What whoever gives out neighbours checks of rows and results.
#pragma once

#include <kith/knn.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

// That the metric compares rows of that type; `what` is plural.
void check_rows_dtype(std::string_view what, DType dtype, Metric metric);
// For metrics of the caller's own: nobody knows whether an offset changes them, or rounding.
void refuse_f64(std::string_view what, DType dtype);

// That so many results can be counted.
void check_result_size(int64_t queries, int64_t k);

void check_host_readable(std::string_view what, const MatrixView& view);
void check_output(const NeighborsView& out, int64_t queries, int64_t k);

// Logs a warning where the base cannot give k neighbours: most often it was swapped with the queries.
void warn_of_short_base(int64_t queries, int64_t rows, int64_t k, const Resources& resources);

// No neighbour for any query.
void write_nothing(Metric metric, const NeighborsView& out);

}  // namespace kith
