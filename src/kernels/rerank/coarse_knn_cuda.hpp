// The k nearest of few rows for many queries, from operands to sorted neighbours: four launches or five, nothing that
// waits.
//
//   1. the product, of which the minima of groups of rows are written (coarse_plan.hpp)
//   2. the k-th smallest minimum, with its error bound, is a threshold
//   3. a second product marks the rows that do not exceed it, a bit for each
//   4. canonical keys of the marked rows, sorted: query by query, or by tiles of rows (rerank_tiles_cuda.cu)
// Two products of few rows cost less than re-ranking whole groups, or than writing every value.
#pragma once

#include "kernels/matrix/knn_windows_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"
#include "kernels/rerank/coarse_plan.hpp"
#include "kernels/rerank/rerank_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace kith {

struct CoarseKnnTask {
  ProductEngine engine = ProductEngine::automatic;  // one that the device runs
  int multiprocessors = 0;
  ProductOperands operands;
  const QueryOperand* query_bounds = nullptr;
  const BaseBounds* base_bounds = nullptr;
  int rows_per_minimum = 8;        // 64, 32, 8 or 2, as plan_coarse says
  float* thresholds = nullptr;     // output, one per query; used by a retry
  uint32_t* key_limits = nullptr;  // likewise
  std::optional<int64_t> row_tile_bytes;  // shared memory for re-ranking by tiles of rows; none: query by query
  RerankTask rerank;               // kind, queries, base, cols, k, numbers, room, neighbours; others are set here
};

// A product, of which the minima of groups of 64, 32, 8 or 2 rows are written: part_count(rows, rows_per_minimum) for
// each query. Enqueues and returns.
void launch_minima(ProductEngine engine, const ProductOperands& operands, const ProductSchedule& schedule,
                   float* minima, int rows_per_minimum, cudaStream_t stream);

// Needs coarse_bytes() of memory, aligned to 16 bytes; list_room is rerank.room when re-ranking by tiles.
// Queries whose window is unbounded, or whose candidates exceed the room,
// fail. Enqueues and returns.
void launch_coarse_knn(const CoarseKnnTask& task, const FailedQueries& failed, std::byte* memory, cudaStream_t stream);

}  // namespace kith
