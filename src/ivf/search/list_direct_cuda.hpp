// The search of lists without estimates, for queries that those leave: the canonical keys of all vectors of a query's
// lists, of which the k smallest are kept.
//
// A list is skipped where the query's reach ends before it begins: |x - c| is larger than the reach and the list's radius
// together. The first queries are shared by several blocks, each with every so many runs of vectors; the last of them to be done
// brings their lists together. A block for each of the others. Bound by double arithmetic and decoding.
#pragma once

#include "ivf/search/list_rerank_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// What it needs of device memory.
struct DirectMemory {
  uint32_t* arrived = nullptr;  // kSharedQueries, zeroed before
  uint64_t* parts = nullptr;    // direct_part_entries(k)
  uint64_t* lists = nullptr;    // direct_list_entries(...)
};
inline constexpr int64_t kSharedQueries = 128;
int64_t direct_part_entries(int64_t k);
int64_t direct_list_entries(int64_t k, int64_t cols, int multiprocessors);  // 0 where shared memory has room

// Of the queries that are left, whose number is read on the device, or of all where there are no candidates' entries.
// Enqueues and returns.
void launch_list_direct(const ListRerankTask& task, const DirectMemory& memory, cudaStream_t stream);

}  // namespace kith
