// The input of re-ranking: queries, rows, and each query's candidate rows.
#pragma once

#include "kernels/distance/canonical.hpp"
#include "rows/device_rows.hpp"

#include <cstdint>

namespace kith {

// Where rows within a radius go on the GPU, however many a query has: each query takes its places, one after the other,
// of one array.
struct RangeTarget {
  uint64_t* hits = nullptr;    // packed neighbours
  uint32_t capacity = 0;       // shared by all queries
  uint32_t* total = nullptr;   // zeroed before; may end above capacity: then some queries have not been delivered
  uint32_t* starts = nullptr;  // first place of each query
  uint32_t* counts = nullptr;  // kNotDelivered initially, and if there was no room
};
inline constexpr uint32_t kNotDelivered = 0xFFFFFFFFu;

// Parts of a tile's rows that are counted apart (range_order_cuda.hpp).
inline constexpr int kRangeTileParts = 32;

// Queries whose neighbours could not be shown to be the nearest. Their numbers are in no order.
struct FailedQueries {
  uint32_t* count = nullptr;    // zeroed before
  uint32_t* queries = nullptr;  // room for all
  uint32_t first = 0;           // the number of the task's first query: several batches share the list

#if defined(__CUDACC__)
  __device__ void add(int64_t query) const { queries[atomicAdd(count, 1u)] = first + static_cast<uint32_t>(query); }
#endif
};

// The rows of each query that may be its nearest: all rows of the first group_counts[q] groups of `groups`, or
// row_counts[q] rows of `rows`, or those that `marks` has bits for.
struct RerankTask {
  KeyKind kind = KeyKind::l2;
  DeviceRowsView queries;  // with inverse norms for cosine
  DeviceRowsView base;
  int64_t cols = 0;
  int64_t k = 0;
  uint32_t first_row = 0;             // the number of the base's first row
  const uint32_t* numbers = nullptr;  // of all its rows, where they are not first_row, first_row + 1, ...
  const uint64_t* kept = nullptr;     // bits of a filter, in these numbers
  const uint32_t* key_limits = nullptr;
  const int32_t* group_counts = nullptr;
  const int32_t* groups = nullptr;  // queries x group_stride
  int64_t group_stride = 0;
  int tiles_per_group = 2;
  const uint32_t* row_counts = nullptr;  // null: groups
  const uint32_t* rows = nullptr;        // queries x capacity
  int64_t capacity = 0;
  const uint32_t* marks = nullptr;  // queries x mark_words(base.count), not for ranges; null: one of the others
  int64_t room = 0;                 // rows of a query within its limit (of marks: all); more fail; at most rerank_room
  bool pads = false;                // a query with fewer than k rows gets padding behind them; else it fails
  uint64_t* neighbors = nullptr;    // queries x k, sorted
  RangeTarget range;                // in the place of neighbours: all rows within the limits, sorted
};

#if defined(__CUDACC__)
// How a block takes places for what it has found of one query (RangeTarget).
struct RangePlaces {  // lives in shared memory
  uint32_t start;
  bool taken;
};

// Called by all threads of the block. Returns false if there is no room.
__device__ inline bool take_places(const RangeTarget& target, int64_t query, uint32_t count, RangePlaces& places) {
  if (threadIdx.x == 0) {
    places.start = atomicAdd(target.total, count);
    places.taken = places.start <= target.capacity && count <= target.capacity - places.start;
    if (places.taken) {
      target.starts[query] = places.start;
      target.counts[query] = count;
    }
  }
  __syncthreads();
  return places.taken;
}
#endif

}  // namespace kith
