// data_survey.hpp and data_sample.hpp for rows in a GPU's memory, with the same bytes. All wait until they are done.
// Cost: one read of the rows.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cluster/data/data_survey.hpp"

#include <cstdint>
#include <vector>

namespace kith {

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
