// The operands of all rows for the products of joins, with what is known of each, made once.
//
// Memory: 2 bytes a value, rounded up to 128, and 16 a row; 40 more for each of kFactRows rows while they are made.
#pragma once

#include <kith/resources.hpp>

#include "cuda/device_array.hpp"
#include "graph/build/nn_descent/descent_workspace.hpp"
#include "graph/build/nn_descent/join_task_cuda.hpp"
#include "kernels/matrix/operand_facts.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class JoinOperandsCuda {
 public:
  // Nothing where the metric is the user's or no product, or there are too many columns for one.
  JoinOperandsCuda(const PairKeyRows& rows, std::shared_ptr<const DeviceContext> context, const Resources& resources);

  JoinOperands get() const { return operands_; }

 private:
  DeviceBuffer halves_;
  DeviceArray<JoinFacts> facts_;
  JoinOperands operands_;
};

// From the facts of so many rows. Enqueues.
void launch_join_facts(KeyKind kind, const QueryFacts* from, int64_t count, JoinFacts* to, cudaStream_t stream);

}  // namespace kith
