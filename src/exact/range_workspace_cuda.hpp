// The device memory of a range search: beside what every search has (search_workspace_cuda.hpp) the rows found, until
// they are brought to the host.
#pragma once

#include "exact/search_workspace_cuda.hpp"
#include "kernels/rerank/range_target.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

struct RangeWorkspace : SearchWorkspace {
  Slot<uint64_t> hits;    // plan.hits neighbours
  Slot<uint32_t> starts;  // of each query's: of a batch or a tile
  Slot<uint32_t> counts;
  // Where results stay on the device: of a tile of the direct engine.
  Slot<uint32_t> tile_counts;  // kRangeTileParts for each query
  Slot<int64_t> tile_starts;

  RangeWorkspace(const SearchTask& task, const KnnCudaPlan& plan) : SearchWorkspace(task, plan) {
    const int64_t queries_at_a_time = std::max(plan.product_queries(), plan.query_tile);
    hits = take<uint64_t>(plan.hits);
    starts = take<uint32_t>(queries_at_a_time);
    counts = take<uint32_t>(queries_at_a_time);
    const int64_t staying = task.wish.result_space.host_readable() ? 0 : queries_at_a_time;
    tile_counts = take<uint32_t>(staying, kRangeTileParts);
    tile_starts = take<int64_t>(staying);
  }
};

}  // namespace kith
