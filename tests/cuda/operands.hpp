// Operands of random vectors on the device, for tests of the kernels that multiply them.
#pragma once

#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include "kernels/matrix/operands_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"

#include <cstdint>
#include <vector>

namespace kith {

inline DeviceRowsView rows_on_device(const DeviceMatrix& matrix) {
  return {matrix.view().data(), matrix.view().dtype(), matrix.view().row_stride(), matrix.view().rows()};
}

// A copy of what lies on the device, after all that was enqueued.
template <typename T>
std::vector<T> read_back(const DeviceBytes& array, int64_t count) {
  KITH_CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<T> values(static_cast<size_t>(count));
  KITH_CUDA_CHECK(cudaMemcpy(values.data(), array.data(), values.size() * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

template <typename T>
T* as(const DeviceBytes& array) {
  return static_cast<T*>(array.data());
}

// Queries and rows of one dtype, by squared distance.
class DeviceOperands {
 public:
  DeviceOperands(DType dtype, int64_t queries, int64_t rows, int64_t cols)
      : queries_(random_vectors(dtype, queries, cols, 31)),
        rows_(random_vectors(dtype, rows, cols, 32)),
        type_(operand_type(KeyKind::squared_l2, dtype, dtype, cols)),
        chunks_(operand_chunks(cols, operand_value_bytes(type_))),
        query_operands_(static_cast<size_t>(operand_bytes(queries, chunks_))),
        base_operands_(static_cast<size_t>(operand_bytes(rows, chunks_))),
        terms_(static_cast<size_t>(operand_tiles(rows) * kOperandTile * 4)),
        centre_(static_cast<size_t>(cols) * 4),
        base_bounds_(sizeof(BaseBounds)),
        query_bounds_(static_cast<size_t>(queries) * sizeof(QueryOperand)) {
    OperandTask base{
        rows_on_device(rows_),        cols, KeyKind::squared_l2, type_, as<float>(centre_), as<BaseBounds>(base_bounds_),
        as<std::byte>(base_operands_)};
    launch_sample(base, nullptr);
    launch_base_operands(base, {terms_.data(), nullptr}, nullptr);
    OperandTask query = base;
    query.rows = rows_on_device(queries_);
    query.operands = as<std::byte>(query_operands_);
    launch_query_operands(query, {as<QueryOperand>(query_bounds_), nullptr, 0}, nullptr);
    operands_ = {type_,  as<std::byte>(query_operands_), as<std::byte>(base_operands_), terms_.data(), queries, rows,
                 chunks_};
  }

  OperandType type() const { return type_; }
  const ProductOperands& view() const { return operands_; }
  const QueryOperand* query_bounds() const { return as<QueryOperand>(query_bounds_); }
  const BaseBounds* base_bounds() const { return as<BaseBounds>(base_bounds_); }
  DeviceRowsView queries() const { return rows_on_device(queries_); }
  DeviceRowsView rows() const { return rows_on_device(rows_); }

 private:
  DeviceMatrix queries_;
  DeviceMatrix rows_;
  OperandType type_;
  int64_t chunks_;
  DeviceBytes query_operands_;
  DeviceBytes base_operands_;
  DeviceBytes terms_;
  DeviceBytes centre_;
  DeviceBytes base_bounds_;
  DeviceBytes query_bounds_;
  ProductOperands operands_;
};

inline std::vector<ProductEngine> engines_here() {
  if (cuda_devices().front().compute_capability == 90) return {ProductEngine::mma, ProductEngine::wgmma};
  return {ProductEngine::mma};
}

}  // namespace kith
