// From the values of the first pass to each query's reach and its first candidates.
//
// A block holds a query's values in registers and finds a value that k of them do not exceed by halving the range; with
// the bounds of the lists that is the reach, and values that it does not rule out become candidates. Where there are
// many values it looks at the least of every eight, which is a little more than the k-th and takes an eighth of the
// comparisons. One read of the values.
#pragma once

#include "ivf/scan/scan_lists_task_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

inline constexpr int64_t kMostFirstValues = 32768;  // of a query: what a block's registers hold

struct ListSelectTask {
  DeviceListsView lists;
  PreparedLists prepared;
  const float* queries = nullptr;
  int64_t query_stride = 0;
  const uint64_t* probes = nullptr;  // queries x slots
  int64_t query_count = 0;
  int64_t slots = 0;
  int64_t k = 0;
  const uint32_t* value_starts = nullptr;
  const float* values = nullptr;
  int64_t value_stride = 0;  // at most kMostFirstValues
  const ErrorBounds* bounds = nullptr;
  const uint32_t* unsure = nullptr;
  float* reaches = nullptr;  // written; infinite where fewer than k values are known
  bool lists_candidates = true;  // false: the second pass looks at all vectors, and finds these again
  ListCandidates candidates;
};

// Enqueues and returns.
void launch_list_select(const ListSelectTask& task, cudaStream_t stream);

}  // namespace kith
