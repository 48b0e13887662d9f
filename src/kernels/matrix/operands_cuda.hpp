// Converts vectors to operands of the matrix units (operand_layout.hpp), with the bounds for candidate_window.hpp.
//
// Halves: values minus a centre (l2, sqeuclidean), times the inverse norm (cosine) or as they are (inner_product),
// times a power of two, rounded. Bytes, where queries and base are both u8 or both i8 and the metric allows: exact.
// Queries are negated (bytes: inverted, the difference is part of the rows' terms), so that a product adds to a row's
// term. One read of the vectors, one write of the operands.
#pragma once

#include "kernels/distance/distance_cuda.hpp"
#include "kernels/matrix/operand_bounds.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// The term of padding and of rows that a filter excludes: with any product added, the value stays above all others.
// (Products of bytes are below 2^27, since no more than 8,000 columns are multiplied.)
inline constexpr int32_t kNoByteTerm = 0x3FFFFFFF;
inline constexpr uint32_t kNoHalfTerm = 0x7F800000;  // +inf
constexpr uint32_t no_row_term(OperandType type) {
  return type == OperandType::bytes ? static_cast<uint32_t>(kNoByteTerm) : kNoHalfTerm;
}

struct OperandTask {
  DeviceRowsView rows;  // with inverse norms for cosine
  int64_t cols = 0;
  KeyKind kind = KeyKind::l2;
  OperandType type = OperandType::half;
  float* centre = nullptr;  // cols values
  BaseBounds* base_bounds = nullptr;
  std::byte* operands = nullptr;  // operand_bytes
  bool parts_far_rows = false;    // of a base: separates far rows (operand_bounds.hpp); only for halves of differences
};

struct BaseOperands {
  void* terms = nullptr;          // a float (halves) or int32_t (bytes) for each row of the tiles
  uint32_t* first_bad = nullptr;  // output unless null: the smallest row that is not finite
  OperandBounds* bounds = nullptr;  // output unless null: per row of the tiles, for halves
};

struct QueryOperands {
  QueryOperand* bounds = nullptr;
  uint32_t* first_bad = nullptr;  // output unless null: the smallest query that is not finite
  uint32_t first_query = 0;       // the number of the first of these
};

// The centre (zeros for keys without differences) and the sample's largest magnitude; where far rows are set apart, of
// those samples that lie together. Uses the memory of the operands.
void launch_sample(const OperandTask& task, cudaStream_t stream);
// After launch_sample.
void launch_base_operands(const OperandTask& task, const BaseOperands& base, cudaStream_t stream);
// Against a base whose centre and bounds are given.
void launch_query_operands(const OperandTask& task, const QueryOperands& queries, cudaStream_t stream);

}  // namespace kith
