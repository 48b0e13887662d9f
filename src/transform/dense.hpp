// Small dense matrices in float64, for training alone: what it computes them for (rotations, principal axes) has as
// many rows and columns as vectors have columns.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace kith {

// A matrix that lies anywhere, transposed or not.
template <typename T>
struct DenseView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_step = 0;  // elements from one row to the next
  int64_t col_step = 1;

  T& operator()(int64_t i, int64_t j) const { return data[i * row_step + j * col_step]; }
  T* row(int64_t i) const { return data + i * row_step; }
  DenseView transposed() const { return {data, cols, rows, col_step, row_step}; }
  DenseView block(int64_t first_row, int64_t first_col, int64_t row_count, int64_t col_count) const {
    return {data + first_row * row_step + first_col * col_step, row_count, col_count, row_step, col_step};
  }
  operator DenseView<const T>() const  // NOLINT(google-explicit-constructor): a view that reads
      requires(!std::is_const_v<T>) {
    return {data, rows, cols, row_step, col_step};
  }
};

// An owned one, row after row, zero at first.
class Dense {
 public:
  Dense() = default;
  Dense(int64_t rows, int64_t cols, std::string_view purpose, const Resources& resources)
      : values_(rows * cols, purpose, resources), rows_(rows), cols_(cols) {
    std::fill(values_.begin(), values_.end(), 0.0);
  }

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  double* row(int64_t i) const { return values_.data() + i * cols_; }
  double& operator()(int64_t i, int64_t j) const { return values_[i * cols_ + j]; }
  DenseView<double> view() const { return {values_.data(), rows_, cols_, cols_, 1}; }
  DenseView<const double> read() const { return view(); }

 private:
  HostArray<double> values_;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
};

}  // namespace kith
