// The rows in range of a tile of keys on the GPU, as the direct engine computes them, packed. Either put one after the
// other (RangeTarget), each query's in no order; or counted, and then written where the caller has made room for them,
// each query's in the order of the rows. A block for each query reads its keys twice, to count and to write.
#pragma once

#include "kernels/rerank/range_order_cuda.hpp"
#include "kernels/rerank/range_target.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// All up to `limit`.
struct RangeTileTask {
  const uint32_t* keys = nullptr;  // ordered, queries x rows
  int64_t stride = 0;
  int64_t queries = 0;
  int64_t rows = 0;
  uint32_t first_row = 0;
  const uint32_t* numbers = nullptr;  // of the rows, where they are not first_row, first_row + 1, ...
  uint32_t limit = 0;
  RangeTarget target;  // where queries that have been delivered before are left as they are
};
// Enqueue and return.
void launch_range_tile(const RangeTileTask& task, cudaStream_t stream);

// How many each query has, for parts of its rows: kRangeTileParts x queries; and the extremes of their keys
// (range_order_cuda.hpp).
void launch_count_tile(const RangeTileTask& task, uint32_t* counts, uint32_t* extremes, cudaStream_t stream);
// starts[q] is where query q's begin; as neighbours, or as words of queries 0, 1, ...
void launch_write_tile(const RangeTileTask& task, const uint32_t* counts, const int64_t* starts, uint64_t* neighbors,
                       cudaStream_t stream);
void launch_write_tile_words(const RangeTileTask& task, const uint32_t* counts, const int64_t* starts,
                             const RangeWord& word, uint64_t* words, cudaStream_t stream);

}  // namespace kith
