// From candidates to neighbours: canonical keys, sorted lists, and what becomes of queries that fail.
#pragma once

#include "kernels/distance/distance_cuda.hpp"
#include "kernels/matrix/product_plan.hpp"
#include "kernels/rerank/coarse_plan.hpp"
#include "kernels/rerank/rerank_task.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// Failed queries keep the previous contents of `neighbors`.
void launch_rerank(const RerankTask& task, const FailedQueries& failed, cudaStream_t stream);

// Gathers the failed queries first .. first + count - 1 and their data; data with a null destination is
// skipped.
struct GatheredQueries {
  std::byte* rows = nullptr;
  double* inverse_norms = nullptr;
  float* thresholds = nullptr;
  uint32_t* key_limits = nullptr;
};
struct GatherTask {
  DeviceRowsView queries;
  int64_t cols = 0;
  const float* thresholds = nullptr;
  const uint32_t* key_limits = nullptr;
  int64_t first = 0;
  int64_t count = 0;
};
void launch_gather_failed(const FailedQueries& failed, const GatherTask& task, const GatheredQueries& to,
                          cudaStream_t stream);
// Scatters their lists of k back.
void launch_scatter_failed(const FailedQueries& failed, int64_t first, int64_t count, const uint64_t* found, int64_t k,
                           uint64_t* neighbors, cudaStream_t stream);

// Merges sorted lists of k, padded, into others. A list must fit a block's shared memory.
void launch_merge_lists(const uint64_t* found, uint64_t* lists, int64_t queries, int64_t k, cudaStream_t stream);

// Re-ranking of marked candidates (operand_layout.hpp) by tiles of f32 rows that stay in shared memory: where queries
// are many and have a hundred candidates each, reading these from the L2 cache for every query would take longest.
//
// Two launches. A block loads a tile once, and its warps take query after query: of its candidates in the tile they
// compute the canonical keys and append them to the query's list in device memory. Then a warp sorts each list.
struct CandidateLists {
  uint32_t* counts = nullptr;   // one for each query, zeroed before
  uint64_t* entries = nullptr;  // queries x the task's room
};

// What launch_rerank does with the task's marks, for f32 queries and rows of up to 128 columns and a room of up to
// kRowTileMostRoom. Enqueues and returns.
void launch_rerank_tiles(const RerankTask& task, const RowTiles& tiles, const CandidateLists& lists,
                         const FailedQueries& failed, cudaStream_t stream);

}  // namespace kith
