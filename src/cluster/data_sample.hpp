// What a few rows, evenly spread, say of the data before products are made of it: a vector near its mean, which is
// subtracted from all rows, and how large values are then, for the scale of halves. Any choice is correct.
#pragma once

#include <kith/resources.hpp>

#include "rows/row_source.hpp"

#include <cstdint>
#include <vector>

namespace kith {

struct DataSample {
  std::vector<float> origin;  // one value a column
  float largest = 0;          // magnitude of a value minus its column's origin
};

inline constexpr int64_t kSampledRows = 256;
// Row `place` of the sample, of so many that are sampled.
constexpr int64_t sampled_row(int64_t place, int64_t samples, int64_t rows) { return place * rows / samples; }

// Of up to kSampledRows, wherever they lie.
DataSample sample_data(RowSource& rows, int64_t cols, const Resources& resources);

// The largest |a[c] - b[c]|; not finite where one is not.
float farthest_apart(const float* a, const float* b, int64_t count);

}  // namespace kith
