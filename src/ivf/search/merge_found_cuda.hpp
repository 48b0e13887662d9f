// The nearest of two lists of neighbours for each query: what was found in two parts of a collection, brought together.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// `a` and `b` have k packed neighbours for each query, sorted, no row in both, and padded; `out`, which is neither, gets
// the first k of all. A search by bisection for each; enqueues and returns.
void launch_merge_found(const uint64_t* a, const uint64_t* b, int64_t queries, int64_t k, uint64_t* out,
                        cudaStream_t stream);

}  // namespace kith
