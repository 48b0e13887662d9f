// The sums of centre_sums.hpp on the GPU, with the same bytes.
//
// Rows are sorted by (block, centre), stably, so that a run, the rows of one centre in one block, lies together in the
// order of their numbers. A warp adds up a run (run_sums_cuda.hpp); then a thread for each column and centre adds its
// runs in the order of the blocks. Cost: one read of every row, some 12 bytes a row for sorting, and 16 a column and
// run, of which there are one for each 64 rows or so.
#pragma once

#include "kernels/assign/run_sums_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

void launch_add_rows(const SumsTask& task, cudaStream_t stream);

// The same for few centres (suits_few_centres): nothing is sorted, and of the runs' memory the sums and weights are
// used.
void launch_add_few(const SumsTask& task, int multiprocessors, cudaStream_t stream);

// The bytes that sorting so many rows by so many bits of (block, centre) takes on the current device: no more than the
// centre_sort_bytes of kmeans_workspace_cuda.hpp.
int64_t centre_sort_bytes_needed(int64_t rows, int bits);

// The sum of weight x key of each block of kSumBlock rows.
void launch_block_objectives(const float* keys, const float* weights, int64_t rows, double* blocks,
                             cudaStream_t stream);

// How many rows have each of `clusters` labels; `counts` are zeroed before.
void launch_count_labels(const int32_t* labels, int64_t rows, int64_t clusters, uint32_t* counts, cudaStream_t stream);

}  // namespace kith
