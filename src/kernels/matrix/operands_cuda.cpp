#include "kernels/matrix/operands_cuda.hpp"

#include "core/memory_budget.hpp"
#include "cuda/error.hpp"

namespace kith {

void launch_sample(const OperandTask& task, cudaStream_t stream) {
  if (is_counted_only(stream)) return;
  KITH_CUDA_CHECK(cudaMemsetAsync(task.base_facts, 0, sizeof(BaseFacts), stream));
  if (task.type == OperandType::half) launch_half_sample(task, stream);
}

void launch_base_operands(const OperandTask& task, const BaseOperands& base, cudaStream_t stream) {
  if (task.type == OperandType::bytes) return launch_byte_base(task, base, stream);
  launch_half_base(task, base, stream);
}

void launch_query_operands(const OperandTask& task, const QueryOperands& queries, cudaStream_t stream) {
  if (task.type == OperandType::bytes) return launch_byte_queries(task, queries, stream);
  launch_half_queries(task, queries, stream);
}

}  // namespace kith
