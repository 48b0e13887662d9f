// Assigns vectors and queries to lists: the first by (key of the metric to the centre, list), exactly.
//
// Runs an exact search over the centres, in blocks of rows that fit the memory limit. Cost: 2 rows x lists x columns
// operations. Memory: 12 bytes for each row of a block and each list requested.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/footprint.hpp"
#include "rows/rows_info.hpp"

#include <cstdint>

namespace kith {

// The list of each row; list 0 for a row that is not finite. The rows may be of any dtype.
void assign_lists(Metric metric, const MatrixView& centres, const MatrixView& rows, int32_t* lists,
                  const Resources& resources);

// The first `probes` lists of each query, f32 in host memory, at most as many as there are.
void rank_lists(Metric metric, const MatrixView& centres, const MatrixView& queries, int64_t probes, int32_t* lists,
                const Resources& resources);

// The memory of rank_lists for that many queries, besides its result and the search itself.
Footprint rank_footprint(int64_t queries, int64_t probes, const Resources& resources);

// The least memory of assign_lists, besides its result, on the device of the resources if it has one, else on the CPU.
Footprint assign_footprint(Metric metric, int64_t lists, const RowsInfo& rows, const Resources& resources);

}  // namespace kith
