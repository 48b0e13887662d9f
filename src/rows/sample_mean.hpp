// A vector near the mean of some rows, to be subtracted from all of them before they are multiplied: small numbers lose
// little. Any choice is correct.
#pragma once

#include "rows/row_source.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// Of up to 256 rows, evenly spread; 0 in a column whose mean is not finite.
std::vector<float> sample_mean(RowSource& rows, int64_t cols);

}  // namespace kith
