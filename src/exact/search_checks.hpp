// What every exact search checks before it plans.
#pragma once

#include <kith/knn.hpp>

#include "exact/search_task.hpp"
#include "rows/knn_checks.hpp"
#include "rows/rows_info.hpp"

namespace kith {

// The shape of a search by that metric. InvalidArgument or Unsupported where there is no such search.
SearchShape check_search(const RowsInfo& queries, const RowsInfo& base, Metric metric);
// The same for k neighbours of each query.
SearchShape check_knn(const RowsInfo& queries, const RowsInfo& base, const KnnParams& params);

}  // namespace kith
