// Re-ranking of marked candidates (operand_layout.hpp) by tiles of f32 rows that stay in shared memory: where queries
// are many and have a hundred candidates each, reading these from the L2 cache for every query would take longest.
//
// Two launches. A block loads a tile once, and its warps take query after query: of its candidates in the tile they
// compute the canonical keys and append them to the query's list in device memory. Then a warp sorts each list.
#pragma once

#include "kernels/rerank/rerank_task.hpp"
#include "kernels/rerank/row_tiles.hpp"

#include <cuda_runtime_api.h>

namespace kith {

struct CandidateLists {
  uint32_t* counts = nullptr;   // one for each query, zeroed before
  uint64_t* entries = nullptr;  // queries x the task's room
};

// What launch_rerank does with the task's marks, for f32 queries and rows of up to 128 columns and a room of up to
// kRowTileMostRoom. Enqueues and returns.
void launch_rerank_tiles(const RerankTask& task, const RowTiles& tiles, const CandidateLists& lists,
                         const FailedQueries& failed, cudaStream_t stream);

}  // namespace kith
