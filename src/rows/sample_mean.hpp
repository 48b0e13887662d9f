// A vector near the mean of some rows, to be subtracted from all of them before they are multiplied: small numbers lose
// little. Any choice is correct.
#pragma once

#include "rows/row_source.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// How many of so many rows tell enough of them: an eighth, 32 at least and 256 at most. Of few rows more would take as
// long as what is done with them.
int64_t sampled_rows(int64_t rows);

// Of that many rows, or of so many, evenly spread; 0 in a column whose mean is not finite.
std::vector<float> sample_mean(RowSource& rows, int64_t cols);
std::vector<float> sample_mean(RowSource& rows, int64_t cols, int64_t samples);

}  // namespace kith
