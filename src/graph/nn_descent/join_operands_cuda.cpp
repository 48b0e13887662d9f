#include "graph/nn_descent/join_operands_cuda.hpp"

#include "core/host_array.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/matrix/operands_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kHalfBytes = 2;

}  // namespace

JoinOperandsCuda::JoinOperandsCuda(const PairKeyRows& rows, std::shared_ptr<const DeviceContext> context,
                                   const Resources& resources) {
  const int64_t count = rows.rows.count;
  if (rows.custom != nullptr || !joins_are_products(rows.kind, rows.cols) || count == 0) return;
  const int64_t chunks = operand_chunks(rows.cols, kHalfBytes);
  const cudaStream_t stream = context->stream();
  halves_ = DeviceBuffer(operand_bytes(count, chunks), "operands of the rows", context, resources);
  facts_ = DeviceBuffer(array_bytes<JoinFacts>(count), "operands of the rows", context, resources);
  const DeviceBuffer centre(4 * rows.cols, "operands of the rows", context, resources);
  const DeviceBuffer base(static_cast<int64_t>(sizeof(BaseFacts)), "operands of the rows", context, resources);
  const DeviceBuffer some(array_bytes<QueryFacts>(std::min(count, kFactRows)), "operands of the rows", context, resources);
  KITH_CUDA_CHECK(cudaMemsetAsync(base.data(), 0, sizeof(BaseFacts), stream));
  OperandTask task{rows.rows, rows.cols, rows.kind, OperandType::half, reinterpret_cast<float*>(centre.data()),
                   reinterpret_cast<BaseFacts*>(base.data()), halves_.data()};
  launch_sample(task, stream);
  for (int64_t first = 0; first < count; first += kFactRows) {
    const int64_t here = std::min(kFactRows, count - first);
    task.rows = slice_rows(rows.rows, first, here);
    task.operands = halves_.data() + first / kOperandTile * chunks * kTileChunkBytes;
    auto* const facts = reinterpret_cast<QueryFacts*>(some.data());
    launch_query_operands(task, {facts, nullptr, 0}, stream);
    launch_join_facts(rows.kind, facts, here, reinterpret_cast<JoinFacts*>(facts_.data()) + first, stream);
  }
  context->synchronize();  // what was taken for a while goes back
  operands_ = {halves_.data(), reinterpret_cast<const JoinFacts*>(facts_.data()), chunks};
}

}  // namespace kith
