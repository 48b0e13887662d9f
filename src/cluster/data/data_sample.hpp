// What a few rows, evenly spread, say of the data before products are made of it: a vector near its mean, which is
// subtracted from all rows, and how large values are then, for the scale of halves. Any choice is correct.
#pragma once

#include <kith/resources.hpp>

#include "cluster/data/data_spread.hpp"
#include "rows/row_source.hpp"

#include <cstdint>

namespace kith {

// Of up to 256 rows, wherever they lie.
DataSample sample_data(RowSource& rows, int64_t cols, const Resources& resources);
// The last of the rows that these are of so many.
int64_t last_sampled_row(int64_t rows);

// The largest |a[c] - b[c]|; not finite where one is not.
float farthest_apart(const float* a, const float* b, int64_t count);

}  // namespace kith
