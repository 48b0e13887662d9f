// A base on the device: its rows as given, inverse norms for cosine, and operands for products with queries of its own
// dtype. Bytes a row: cols x size + 8 (cosine), and for metrics made of products 2 cols (bytes: 1 col), rounded up to a
// multiple of 128, + 4. The first search of one query adds a copy of floats in bytes (byte_screen_cuda.hpp) if there is
// room: cols, rounded up to a multiple of 16, + 12 a row.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cuda/device_array.hpp"
#include "exact/prepared_base.hpp"
#include "exact/product_base_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

namespace kith {

class PreparedBaseCuda final : public PreparedBase {
 public:
  PreparedBaseCuda(int device, const MatrixView& base, const PrepareOptions& options, const Resources& resources);

  int device() const { return device_; }
  const DeviceRowsView& rows() const { return rows_; }
  const OperandsView& operands() const { return operands_; }
  // The copy in bytes; without one where it was not asked for, or there was no room.
  ByteScreenView byte_screen() const;
  void expect_one(int64_t k, const Resources& resources) const override;
  int64_t bytes() const override;

 private:
  void bring(const MatrixView& base, const Resources& resources);
  void prepare_operands(const MatrixView& base, Metric metric, const Resources& resources);

  std::shared_ptr<const DeviceContext> context_;  // while it is made
  int device_;
  DeviceBuffer matrix_;
  DeviceArray<double> norms_;
  DeviceBuffer operand_memory_;
  DeviceBuffer terms_memory_;
  DeviceRowsView rows_;
  OperandsView operands_;
  Metric metric_;
  int64_t cols_;

  struct Screen {
    DeviceBuffer memory;
    ByteScreenView view;
  };
  mutable std::mutex mutex_;  // held to look or to keep, never while something is made
  mutable std::shared_ptr<const Screen> screen_;
  mutable std::atomic<uint32_t> screens_wanted_ = 0;
};

// Matrices as a search on `device` sees them.
bool lies_on(const MatrixView& matrix, int device);
// Throws InvalidArgument if the matrix is on another device.
void check_on_device(const MatrixView& matrix, std::string_view what, int device);
bool can_be_infinite(DType dtype);

// Enqueues the requested checks, if any, and the computation of the rows' norms.
void inspect_rows(DeviceRowsView& rows, int64_t cols, const RowFindings& findings, cudaStream_t stream);

}  // namespace kith
