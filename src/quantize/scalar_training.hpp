// What a scalar code is trained to: the least value and the span of each column, in one pass over all rows.
#pragma once

#include <kith/resources.hpp>

#include "rows/row_source.hpp"

#include <vector>

namespace kith {

// The least values, then the spans. InvalidArgument where a span leaves f32.
std::vector<float> train_scalar(RowSource& rows, const Resources& resources);

// What it takes on the host at least.
int64_t scalar_training_bytes(const RowsInfo& rows, int threads);

}  // namespace kith
