// The scan of inverted lists on matrix units: a list is decoded once for all the queries that visit it.
//
// An item is a run of a list's vectors and a group of its queries (scan_cut.hpp). The queries, less the list's centre,
// lie in shared memory as halves (scan_queries_cuda.hpp); vectors are decoded to halves in registers
// (scan_decoders_cuda.hpp), which are the matrix units' left operand. On Hopper products are those of warpgroups, 64
// vectors with up to 64 queries at a time, elsewhere those of warps.
//
//   first pass   writes the estimate (list_bounds_cuda.hpp) of every pair of its items
//   second pass  writes the vectors that the query's reach does not rule out, with bounds of their distance or key
//
// Time is that of the product, or of decoding where a list has few queries.
#pragma once

#include "ivf/scan/scan_lists_task_cuda.hpp"

#include <cuda_runtime_api.h>

namespace kith {

// The kernels that scan lists: one for each kind of matrix product, and two by lookup tables. ivf_search_cuda.cpp chooses.
inline constexpr int kNarrowQueries = 128;  // of a group, of vectors of up to 128 columns

// The most queries of a group, whichever engine: what the shared memory of a block has room for. 0: none has.
int scan_group_queries(const CodeFormat& format);

// Products of single warps. Any vectors that scan_group_queries() has a number for.
void launch_scan_mma(const ScanListsTask& task, bool first, cudaStream_t stream);

// Products of warpgroups, which Hopper alone has, of vectors of up to 128 columns; not for cosine.
void launch_scan_wgmma(const ScanListsTask& task, bool first, cudaStream_t stream);

// Lookup tables, on every GPU: for distances, and codes that suits_tables() says.
bool suits_tables(const CodeFormat& format);
void launch_scan_tables(const ScanListsTask& task, bool first, cudaStream_t stream);

// Lookup tables of additive codes, in a list without a centre; not for cosine. Tables first: task.sum_tables.
bool suits_sums(const CodeFormat& format);
inline bool scans_sums(const ScanListsTask& task) {
  return task.sum_tables != nullptr && !task.lists.has_origin() && task.lists.kind != KeyKind::cosine;
}
void launch_sum_tables(const ScanListsTask& task, int64_t queries, cudaStream_t stream);
void launch_scan_sums(const ScanListsTask& task, bool first, cudaStream_t stream);

}  // namespace kith
