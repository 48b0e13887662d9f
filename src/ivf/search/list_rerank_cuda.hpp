// From candidates of lists to neighbours: canonical keys of the decoded vectors, sorted. Where candidates are many the
// k-th smallest estimate rules most of them out; four threads compute the canonical key of each of the others.
//
// A warp for each query where queries are many, which spares barriers and hides one query's waits behind others' work; a
// block for each where they are few, and for those that have too many candidates for a warp. Queries whose candidates
// are too many for that too, or whose bounds say nothing, are left (list_direct_cuda.hpp).
#pragma once

#include "ivf/scan/scan_lists_task_cuda.hpp"
#include "kernels/rerank/rerank_task.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

inline constexpr int64_t kMostListCandidates = 4096;  // of a query, that their k-th estimate is taken from

struct ListRerankTask {
  DeviceListsView lists;
  PreparedLists prepared;
  const float* queries = nullptr;
  int64_t query_stride = 0;
  int64_t query_count = 0;
  const uint64_t* probes = nullptr;  // queries x slots
  int64_t slots = 0;
  int64_t k = 0;
  const uint64_t* kept = nullptr;
  ListCandidates candidates;           // no entries: all queries are left
  const ErrorBounds* worst = nullptr;  // of each query's estimates
  int64_t room = 0;                    // candidates that are not ruled out; queries with more are left
  const uint32_t* unsure = nullptr;
  const float* reaches = nullptr;  // of each query that is not unsure, ties included; none: nothing is known
  FailedQueries crowded;          // memory for those that are too much for a warp
  FailedQueries left;             // written by the one, read by the other
  uint64_t* neighbors = nullptr;  // queries x k, sorted, padded
  int multiprocessors = 0;
};

// Enqueues and returns.
void launch_list_rerank(const ListRerankTask& task, cudaStream_t stream);

}  // namespace kith
