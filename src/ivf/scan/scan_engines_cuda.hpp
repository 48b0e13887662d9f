// The kernels that scan lists: one for each kind of matrix product, and one by lookup tables. scan_lists_cuda.hpp chooses.
#pragma once

#include "ivf/scan/scan_lists_task_cuda.hpp"

#include <cuda_runtime_api.h>

namespace kith {

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
