// data_survey.hpp for rows in a GPU's memory, with the same bytes. All wait until they are done.
// Cost: one read of the rows.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <vector>

namespace kith {

// What a few rows, evenly spread, say of the data before products are made of it: a vector near its mean, which is
// subtracted from all rows, and how large values are then, for the scale of halves. Any choice is correct.
struct DataSample {
  std::vector<float> origin;  // one value a column
  float largest = 0;          // magnitude of a value minus its column's origin
};

// As DataSurvey::add: adds to `sums`, the columns' sums and then their squares', and returns the first row, counted
// from `rows`, with a NaN or an infinity, or -1.
int64_t survey_cuda(const MatrixView& rows, const std::vector<float>& origin, bool directions, bool check_finite,
                    std::vector<double>& sums, const Resources& resources);

inline constexpr int kMostDataSamples = 256;  // a block of a GPU holds them
// As sample_data, of so many rows, evenly spread: their mean, and the largest magnitude less it.
DataSample sample_cuda(const MatrixView& rows, int64_t samples, const Resources& resources);

// The first row, counted from `rows`, with a NaN or an infinity, or -1.
int64_t first_not_finite_cuda(const MatrixView& rows, const Resources& resources);

}  // namespace kith
