// The training rows of a transform in a GPU's memory: gathered there if they are on the GPU, otherwise fetched by the
// host and copied. Sums of columns and of outer products have the order, and so the bits, of principal_axes.cpp.
//
// Cost: two reads of the rows by a thread for each column, and rows x cols^2 / 2 multiply-adds in float64.
#pragma once

#include "cuda/device_array.hpp"
#include "transform/principal_axes.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class RowsOnDevice {
 public:
  RowsOnDevice(int64_t rows, int64_t cols, std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // Loads the rows minus their mean. Throws InvalidArgument, naming the row, for a NaN or an infinity.
  PrincipalAxes load(const TrainingRows& rows, const Resources& resources);
  // Enqueues the multiplication of all values, in float64 and rounded.
  void multiply_by(double scale) const;

  DenseView<const float> view() const { return {values_.data(), rows_, cols_, cols_, 1}; }

 private:
  void fetch(const TrainingRows& rows, const Resources& resources) const;
  std::vector<double> column_sums() const;

  const int64_t rows_;
  const int64_t cols_;
  const std::shared_ptr<const DeviceContext> context_;
  DeviceArray<float> values_;
  DeviceArray<float> mean_;
  DeviceArray<double> sums_;
  DeviceArray<double> products_;
  DeviceArray<double> parts_;  // of a product's sums
};

}  // namespace kith
