// Principal component analysis: the directions in which rows differ most.
//
// The mean and the sums of outer products are in float64, rows in the order of their numbers; the mean is rounded to
// f32 first and the sums are of what is left of the rows then, so that a mean far larger than the spread costs nothing.
// Cost: rows x cols^2 / 2 multiply-adds and an eigenproblem (symmetric_eigen.hpp); 4,096 rows and three squares of
// doubles in memory.
#pragma once

#include <kith/resources.hpp>

#include "transform/dense.hpp"
#include "transform/training_rows.hpp"

#include <cstdint>
#include <vector>

namespace kith {

struct PrincipalAxes {
  std::vector<float> mean;
  std::vector<double> variances;  // along each axis, largest first
  Dense axes;                     // all of them, one in each row
};

PrincipalAxes principal_axes(const TrainingRows& rows, const Resources& resources);

// The mean of each column, rounded once.
std::vector<float> column_means(const TrainingRows& rows, const Resources& resources);

}  // namespace kith
