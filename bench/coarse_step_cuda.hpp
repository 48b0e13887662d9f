// The coarse step of a search of inverted lists, from queries to packed neighbours, as a benchmark calls it.
#pragma once

#include <kith/kith.hpp>

#include "cuda_timing.hpp"

#include "kernels/matrix/operands_cuda.hpp"
#include "kernels/rerank/coarse_knn_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace {

using namespace kith;

inline size_t bytes_of(int64_t count, size_t each = 1) { return static_cast<size_t>(count) * each; }

class Coarse {
 public:
  Coarse(const float* centres, int64_t lists, int64_t cols, int64_t most_queries, cudaStream_t stream)
      : lists_(lists),
        cols_(cols),
        chunks_(operand_chunks(cols, 2)),
        device_(cuda_devices().front()),
        base_{centres, DType::f32, cols, lists},
        base_operands_(bytes_of(operand_bytes(lists, chunks_))),
        terms_(bytes_of(operand_tiles(lists) * kOperandTile, 4)),
        centre_(bytes_of(cols, 4)),
        base_bounds_(sizeof(BaseBounds)),
        query_operands_(bytes_of(operand_bytes(most_queries, chunks_))),
        query_bounds_(bytes_of(most_queries, sizeof(QueryOperand))),
        thresholds_(bytes_of(most_queries, 4)),
        key_limits_(bytes_of(most_queries, 4)),
        failed_(bytes_of(most_queries + 1, 4)),
        memory_(bytes_of(coarse_bytes(most_queries, lists, 2, 4096))),
        stream_(stream) {
    check(cudaMemset(base_bounds_.as<void>(), 0, sizeof(BaseBounds)));
    launch_sample(task(base_, base_operands_), stream_);
    launch_base_operands(task(base_, base_operands_), {terms_.as<void>(), nullptr}, stream_);
  }

  void run(const float* queries, int64_t count, int64_t probes, uint64_t* out) const {
    const DeviceRowsView rows{queries, DType::f32, cols_, count};
    check(cudaMemsetAsync(failed_.as<void>(), 0, 4, stream_));
    launch_query_operands(task(rows, query_operands_), {query_bounds_.as<QueryOperand>(), nullptr, 0}, stream_);
    CoarseKnnTask coarse;
    coarse.engine = product_engine(device_.compute_capability);
    coarse.multiprocessors = device_.multiprocessors;
    coarse.operands = {OperandType::half,
                       query_operands_.as<std::byte>(),
                       base_operands_.as<std::byte>(),
                       terms_.as<void>(),
                       count,
                       lists_,
                       chunks_};
    coarse.query_bounds = query_bounds_.as<QueryOperand>();
    coarse.base_bounds = base_bounds_.as<BaseBounds>();
    coarse.rows_per_minimum = plan_coarse(probes, lists_).rows_per_minimum;
    coarse.thresholds = thresholds_.as<float>();
    coarse.key_limits = key_limits_.as<uint32_t>();
    coarse.rerank.kind = KeyKind::squared_l2;
    coarse.rerank.queries = rows;
    coarse.rerank.base = base_;
    coarse.rerank.cols = cols_;
    coarse.rerank.k = probes;
    const int64_t shared = most_shared_bytes(device_.compute_capability);
    coarse.rerank.room = coarse_room(probes, lists_, rerank_room(cols_, shared));
    coarse.rerank.neighbors = out;
    const CoarseRerank shape{
        count, lists_, cols_, probes, DType::f32, DType::f32, coarse.rerank.room, shared, device_.multiprocessors};
    if (suits_row_tiles(shape)) coarse.row_tile_bytes = shared;
    launch_coarse_knn(coarse, {failed_.as<uint32_t>(), failed_.as<uint32_t>() + 1}, memory_.as<std::byte>(), stream_);
  }

  uint32_t failed() const {
    uint32_t count = 0;
    check(cudaMemcpy(&count, failed_.as<void>(), 4, cudaMemcpyDeviceToHost));
    return count;
  }

 private:
  OperandTask task(const DeviceRowsView& rows, const DeviceBytes& operands) const {
    return {rows,
            cols_,
            KeyKind::squared_l2,
            OperandType::half,
            centre_.as<float>(),
            base_bounds_.as<BaseBounds>(),
            operands.as<std::byte>()};
  }

  int64_t lists_;
  int64_t cols_;
  int64_t chunks_;
  DeviceInfo device_;
  DeviceRowsView base_;
  DeviceBytes base_operands_;
  DeviceBytes terms_;
  DeviceBytes centre_;
  DeviceBytes base_bounds_;
  DeviceBytes query_operands_;
  DeviceBytes query_bounds_;
  DeviceBytes thresholds_;
  DeviceBytes key_limits_;
  DeviceBytes failed_;
  DeviceBytes memory_;
  cudaStream_t stream_;
};

}  // namespace
