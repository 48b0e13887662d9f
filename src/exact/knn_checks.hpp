// What every exact search checks before it plans.
#pragma once

#include <kith/knn.hpp>

#include "exact/search_task.hpp"
#include "rows/rows_info.hpp"

namespace kith {

// The shape of a search by that metric. InvalidArgument or Unsupported where there is no such search.
SearchShape check_search(const RowsInfo& queries, const RowsInfo& base, Metric metric);
// The same for k neighbours of each query.
SearchShape check_knn(const RowsInfo& queries, const RowsInfo& base, const KnnParams& params);

// That the metric compares rows of that type; `what` is plural.
void check_rows_dtype(std::string_view what, DType dtype, Metric metric);

// That so many results can be counted.
void check_result_size(int64_t queries, int64_t k);

void check_host_readable(std::string_view what, const MatrixView& view);
void check_output(const NeighborsView& out, int64_t queries, int64_t k);

// Logs a warning where the base cannot give k neighbours: most often it was swapped with the queries.
void warn_of_short_base(int64_t queries, int64_t rows, int64_t k, const Resources& resources);

// No neighbour for any query.
void write_nothing(Metric metric, const NeighborsView& out);

}  // namespace kith
