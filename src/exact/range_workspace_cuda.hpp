// The device memory of a range search: beside what every search has (search_workspace_cuda.hpp) the rows found, until
// they are brought to the host.
#pragma once

#include "exact/search_workspace_cuda.hpp"
#include "kernels/rerank/range_target.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

struct RangeWorkspace : SearchWorkspace {
  int64_t hits = 0;    // plan.hits neighbours, u64
  int64_t starts = 0;  // of each query's: of a batch or a tile, u32
  int64_t counts = 0;
  // Where results stay on the device: of a tile of the direct engine.
  int64_t tile_counts = 0;  // u32, kRangeTileParts for each query
  int64_t tile_starts = 0;  // i64

  RangeWorkspace(const SearchTask& task, const KnnCudaPlan& plan) : SearchWorkspace(task, plan) {
    const int64_t queries_at_a_time = std::max(plan.product.queries, plan.query_tile);
    hits = take(plan.hits, 8);
    starts = take(queries_at_a_time, 4);
    counts = take(queries_at_a_time, 4);
    const int64_t staying = task.wish.result_space.host_readable() ? 0 : queries_at_a_time;
    tile_counts = take(staying, 4 * kRangeTileParts);
    tile_starts = take(staying, 8);
  }
};

}  // namespace kith
