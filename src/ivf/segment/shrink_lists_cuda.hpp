// A segment of lists on a device less the rows that are not kept, which are numbered anew among the kept ones: counts of
// runs of vectors, their sums, one read and one write of what stays.
#pragma once

#include "core/divide.hpp"
#include "ivf/segment/merge_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Rows that stay, on the device: as KeptRows has them.
struct KeptBits {
  const uint64_t* bits = nullptr;
  const uint32_t* ranks = nullptr;  // how many are kept before each 4,096th
};

inline constexpr int64_t kShrinkRun = 1024;  // vectors that are counted together
inline int64_t shrink_runs(int64_t vectors) { return divide_up(vectors, kShrinkRun); }

// Of each run of vectors how many are kept before it, and behind the last how many there are: shrink_runs + 1 numbers.
// Enqueues and returns.
void launch_count_kept(const ListArrays& from, const KeptBits& kept, uint32_t* before, cudaStream_t stream);

// Fills `to`, which has room for so many. Enqueues and returns.
void launch_keep_vectors(const ListArrays& from, int64_t lists, int64_t code_bytes, const KeptBits& kept,
                         const uint32_t* before, const ListArrays& to, cudaStream_t stream);

}  // namespace kith
