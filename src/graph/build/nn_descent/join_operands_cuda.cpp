#include "graph/build/nn_descent/join_operands_cuda.hpp"

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
  facts_ = DeviceArray<JoinFacts>(count, "operands of the rows", context, resources);
  const DeviceArray<float> centre(rows.cols, "operands of the rows", context, resources);
  const DeviceArray<BaseFacts> base(1, "operands of the rows", context, resources);
  const DeviceArray<QueryFacts> some(std::min(count, kFactRows), "operands of the rows", context, resources);
  context->fill(base.data(), 0, 1);
  OperandTask task{rows.rows, rows.cols, rows.kind, OperandType::half, centre.data(), base.data(), halves_.data()};
  launch_sample(task, stream);
  for (int64_t first = 0; first < count; first += kFactRows) {
    const int64_t here = std::min(kFactRows, count - first);
    task.rows = slice_rows(rows.rows, first, here);
    task.operands = halves_.data() + first / kOperandTile * chunks * kTileChunkBytes;
    launch_query_operands(task, {some.data(), nullptr, 0}, stream);
    launch_join_facts(rows.kind, some.data(), here, facts_.data() + first, stream);
  }
  context->synchronize();  // what was taken for a while goes back
  operands_ = {halves_.data(), facts_.data(), chunks};
}

}  // namespace kith
