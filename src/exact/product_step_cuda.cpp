#include "exact/product_step_cuda.hpp"

#include "cuda/error.hpp"

namespace kith {

void make_operands(Metric metric, OperandType type, const DeviceRowsView& rows, int64_t cols, const OperandsView& to,
                   uint32_t* bad_row, cudaStream_t stream, bool parts_far_rows) {
  constexpr int64_t kFewRows = 4096;  // for which looking for far ones takes longer than it may save
  const OperandTask task{rows,      cols,     key_kind(metric), type,
                         to.centre, to.bounds, to.operands,      parts_far_rows && rows.count >= kFewRows};
  launch_sample(task, stream);
  launch_base_operands(task, {to.terms, bad_row}, stream);
}

void sample_operands(Metric metric, OperandType type, const DeviceRowsView& rows, int64_t cols, const OperandsView& to,
                     cudaStream_t stream) {
  launch_sample({rows, cols, key_kind(metric), type, to.centre, to.bounds, to.operands}, stream);
}

void ProductStep::round_queries(const DeviceRowsView& queries, int64_t first_query, bool check,
                                const ProductBase& base) const {
  const OperandTask task{queries,
                         task_.shape.cols,
                         kind_,
                         product().operands,
                         base.operands.centre,
                         base.operands.bounds,
                         at(layout_.query_operands)};
  uint32_t* const bad_query = check ? &rows_.status()->bad_query : nullptr;
  launch_query_operands(task, {at(layout_.query_bounds), bad_query, static_cast<uint32_t>(first_query)}, stream_);
}

ProductOperands ProductStep::operands_of(int64_t queries, const ProductBase& base) const {
  return {product().operands,
          at(layout_.query_operands),
          base.operands.operands,
          base.operands.terms,
          queries,
          base.rows.count,
          operand_chunks(task_, product()),
          last_chunk_steps(task_.shape.cols, operand_value_bytes(product().operands))};
}

ProductSchedule ProductStep::schedule(int64_t queries, const ProductBase& base) const {
  return schedule_product(queries, base.rows.count, product().multiprocessors, operand_chunks(task_, product()));
}

RerankTask ProductStep::rerank_task(const DeviceRowsView& queries, const ProductBase& base) const {
  RerankTask task;
  task.kind = kind_;
  task.queries = queries;
  task.base = base.rows;
  task.cols = task_.shape.cols;
  task.k = task_.within() ? 0 : task_.k;
  task.first_row = static_cast<uint32_t>(base.first_row);
  task.numbers = base.numbers;
  task.kept = base.kept;
  return task;
}

void ProductStep::collect(const ProductCandidates& candidates, int64_t room, const ProductBase& base,
                          RerankTask& rerank) const {
  const int64_t queries = rerank.queries.count;
  KITH_CUDA_CHECK(cudaMemsetAsync(candidates.counts, 0, static_cast<size_t>(queries) * sizeof(uint32_t), stream_));
  launch_product<ProductCandidates>(product().engine, operands_of(queries, base), schedule(queries, base), candidates,
                                    stream_);
  rerank.row_counts = candidates.counts;
  rerank.rows = candidates.rows;
  rerank.capacity = candidates.capacity;
  rerank.room = room;
}

DeviceRowsView ProductStep::gather(const FailedQueries& numbers, const DeviceRowsView& queries, int64_t first,
                                   int64_t count) const {
  const bool unit = queries.inverse_norms != nullptr;
  const GatheredQueries to{at(layout_.failed_rows), unit ? at(layout_.failed_norms) : nullptr,
                           at(layout_.failed_thresholds), at(layout_.failed_limits)};
  launch_gather_failed(
      numbers, {queries, task_.shape.cols, at(layout_.thresholds), at(layout_.key_limits), first, count}, to, stream_);
  return {to.rows, queries.dtype, task_.shape.cols, count, to.inverse_norms};
}

DeviceRowsView ProductStep::gather_left(const DeviceRowsView& queries, int64_t count) const {
  const bool unit = queries.inverse_norms != nullptr;
  const GatheredQueries to{at(layout_.left_rows), unit ? at(layout_.left_norms) : nullptr};
  launch_gather_failed(left(), {queries, task_.shape.cols, nullptr, nullptr, 0, count}, to, stream_);
  return {to.rows, queries.dtype, task_.shape.cols, count, to.inverse_norms};
}

uint32_t ProductStep::read(const uint32_t* count) const {
  uint32_t value = 0;
  KITH_CUDA_CHECK(cudaMemcpyAsync(&value, count, sizeof value, cudaMemcpyDeviceToHost, stream_));
  KITH_CUDA_CHECK(cudaStreamSynchronize(stream_));
  return value;
}

}  // namespace kith
