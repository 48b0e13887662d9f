// The scan of inverted lists on matrix units: a list is decoded once for all the queries that visit it.
//
// An item is a run of a list's vectors and a group of its queries (scan_cut.hpp). The queries, less the list's centre,
// lie in shared memory as halves (scan_queries_cuda.hpp); vectors are decoded to halves in registers
// (scan_decoders_cuda.hpp), which are the matrix units' left operand. On Hopper products are those of warpgroups, 64
// vectors with up to 64 queries at a time, elsewhere those of warps (scan_engines_cuda.hpp).
//
//   first pass   writes the estimate (list_bounds_cuda.hpp) of every pair of its items
//   second pass  writes the vectors that the query's reach does not rule out, with bounds of their distance or key
//
// Time is that of the product, or of decoding where a list has few queries.
#pragma once

#include "ivf/scan/scan_lists_task_cuda.hpp"

#include <cuda_runtime_api.h>

namespace kith {

// Enqueue and return.
void launch_scan_first(const ScanListsTask& task, cudaStream_t stream);
void launch_scan_later(const ScanListsTask& task, cudaStream_t stream);

}  // namespace kith
