// What every kind of index wants of the rows that are added to it, and of queries.
#pragma once

#include "index/index_state.hpp"

namespace kith {

// That `rows` can come to `current`, null where the index is empty, for searches on the device asked for: by their
// dtype, their columns, their number and where they lie.
void check_added(const IndexState* current, const MatrixView& rows, Metric metric, Device asked);

// That all values can be searched by the metric. Passes over rows in host memory; others are left to their kind.
void check_added_values(const MatrixView& rows, const IndexParams& params, const Resources& resources);

// That these can be searched for.
void check_queries(const IndexContent& content, const MatrixView& queries, Metric metric);

}  // namespace kith
