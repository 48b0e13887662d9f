// data_survey.hpp and data_sample.hpp for rows in a GPU's memory, with the same bytes. All wait until they are done.
// Cost: one read of the rows.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cluster/data_sample.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// As DataSurvey::add: adds to `sums`, the columns' sums and then their squares', and returns the first row, counted
// from `rows`, with a NaN or an infinity, or -1.
int64_t survey_cuda(const MatrixView& rows, const std::vector<float>& origin, bool directions, bool check_finite,
                    std::vector<double>& sums, const Resources& resources);

// sample_data of so many of the rows.
DataSample sample_cuda(const MatrixView& rows, int64_t samples, const Resources& resources);

// The first row, counted from `rows`, with a NaN or an infinity, or -1.
int64_t first_not_finite_cuda(const MatrixView& rows, const Resources& resources);

}  // namespace kith
