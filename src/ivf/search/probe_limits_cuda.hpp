// The lists that queries look at, on the device: ranked lists packed as the search takes them (probe_pairs_cuda.hpp), and
// how many of them: those asked for, or, where they hold too few vectors, the least number that hold enough.
#pragma once

#include "ivf/segment/device_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// List numbers as exact search gives them, packed; -1 becomes padding. Enqueues and returns.
void launch_pack_probes(const int64_t* lists, int64_t count, uint64_t* packed, cudaStream_t stream);

// Adds the vectors of each list, those that `kept` keeps by their row numbers or all, to sizes. Enqueues and returns.
void launch_add_list_sizes(const DeviceListsView& lists, const uint64_t* kept, uint32_t* sizes, cudaStream_t stream);

struct ProbeLimitsTask {
  uint64_t* probes = nullptr;  // queries x slots, packed lists in their order; those past a query's become padding
  int64_t queries = 0;
  int64_t slots = 0;
  int64_t asked = 0;
  int64_t least = 0;                // vectors that a query's lists must hold
  const uint32_t* sizes = nullptr;  // of each list
  int64_t lists = 0;
  uint32_t* short_count = nullptr;   // zeroed before: of queries whose slots hold too few, unless they are all lists;
  uint32_t* short_queries = nullptr;  // which they are, in no order: all their probes become padding
};
// Enqueues and returns.
void launch_probe_limits(const ProbeLimitsTask& task, cudaStream_t stream);

}  // namespace kith
