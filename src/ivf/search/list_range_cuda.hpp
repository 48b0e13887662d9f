// All vectors in range in the queries' lists, on a GPU: canonical keys of every vector, of which those up to a key are
// written, in no order. A block for each query and list. Bound by double arithmetic and decoding.
#pragma once

#include "ivf/segment/device_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// What is found, of all queries.
struct ListRangeHits {
  unsigned long long* total = nullptr;  // zeroed before; may end above capacity, where some were dropped
  uint32_t* counts = nullptr;           // of each query, likewise
  uint64_t* neighbors = nullptr;        // packed
  uint32_t* queries = nullptr;          // the query of each
  int64_t capacity = 0;
};

struct ListRangeTask {
  DeviceListsView lists;
  const float* queries = nullptr;
  int64_t query_stride = 0;
  int64_t query_count = 0;
  const uint64_t* probes = nullptr;  // queries x slots, packed neighbours: the rows are list numbers; padding is none
  int64_t slots = 0;
  const uint64_t* kept = nullptr;  // bits of a filter, by row number
  float most = 0;                  // the largest key in range
  ListRangeHits hits;
  int multiprocessors = 0;
};

// Enqueues and returns.
void launch_list_range(const ListRangeTask& task, cudaStream_t stream);

// Puts hits together by query: starts[q] is where those of query q begin, and moves on as they come.
void launch_group_hits(const ListRangeHits& hits, int64_t count, int64_t* starts, uint64_t* grouped,
                       cudaStream_t stream);

}  // namespace kith
