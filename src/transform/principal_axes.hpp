// Principal component analysis, the directions in which rows differ most; and column means.
//
// The mean and the sums of outer products are in float64, with rows in the order of their numbers. The mean is rounded
// to f32 and subtracted before products are summed, so that a mean far larger than the spread loses no digits. The same
// bytes on every device.
// Cost: rows x cols^2 / 2 multiply-adds and an eigenproblem, on the host (kernels/dense/factorisations.hpp).
#pragma once

#include <kith/resources.hpp>

#include "kernels/dense/dense.hpp"
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
// On the CPU.
Footprint principal_axes_footprint(const TrainingRowsShape& shape, const Resources& resources);

// The mean of each column, rounded once.
std::vector<float> column_means(const TrainingRows& rows, const Resources& resources);
Footprint column_means_footprint(const TrainingRowsShape& shape, const Resources& resources);

// Shared by both devices. Rows are added up in pieces of this size.
inline constexpr int64_t kCovariancePiece = 4096;
// The mean, by sums of columns.
std::vector<float> mean_of(const std::vector<double>& sums, int64_t rows);
// The axes of rows less `mean`: `products` are their sums of outer products, `sums` those of columns.
PrincipalAxes axes_of(std::vector<float> mean, const std::vector<double>& sums, Dense products, int64_t rows,
                      const Resources& resources);

// The same on a GPU (rows_on_device.hpp); with resources that only count, counts its memory. Unsupported without
// CUDA.
PrincipalAxes principal_axes_cuda(const TrainingRows& rows, int device, const Resources& resources);
void count_principal_axes_cuda(int64_t rows, int64_t cols, int device, const Resources& counting);

}  // namespace kith
