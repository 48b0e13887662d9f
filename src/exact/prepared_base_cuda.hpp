// A base on the device: its rows as they came, inverse norms for cosine, and operands for products with queries of its
// own dtype. Bytes: cols x size + (cosine) 8 a row, and for the metrics made of products 2 cols (bytes: 1), rounded up
// to a multiple of 128, + 4.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cuda/device_array.hpp"
#include "exact/prepared_base.hpp"
#include "exact/product_base_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

namespace kith {

class PreparedBaseCuda final : public PreparedBase {
 public:
  PreparedBaseCuda(int device, const MatrixView& base, const PrepareOptions& options, const Resources& resources);

  int device() const { return device_; }
  const DeviceRowsView& rows() const { return rows_; }
  const OperandsView& operands() const { return operands_; }
  int64_t bytes() const override {
    return matrix_.bytes() + norms_.bytes() + operand_memory_.bytes() + fact_memory_.bytes();
  }

 private:
  void bring(const MatrixView& base, const Resources& resources);
  void prepare_operands(const MatrixView& base, Metric metric, const Resources& resources);

  std::shared_ptr<const DeviceContext> context_;  // while it is made
  int device_;
  DeviceBuffer matrix_;
  DeviceArray<double> norms_;
  DeviceBuffer operand_memory_;
  DeviceBuffer fact_memory_;
  DeviceRowsView rows_;
  OperandsView operands_;
};

// Matrices as a search on `device` sees them.
bool lies_on(const MatrixView& matrix, int device);
// InvalidArgument where it lies on another.
void check_on_device(const MatrixView& matrix, std::string_view what, int device);
DeviceRowsView device_rows(const MatrixView& matrix);
bool can_be_infinite(DType dtype);

// Looks for what is wanted, if anything is, and gives the rows their norms. Enqueues.
void inspect_rows(DeviceRowsView& rows, int64_t cols, const RowFindings& findings, cudaStream_t stream);

}  // namespace kith
