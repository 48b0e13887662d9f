// The kernels of NN-Descent's rounds on a GPU (descent_steps.hpp), on plain arrays in its memory. They enqueue and do
// not wait.
//
// A block joins the samples of one row, one or two warps those of a small one (small_join_cuda.cu). A block gathers
// their operands into shared memory, multiplies NEW with NEW and OLD on the matrix units, and leaves for each sample
// the pairs that the product's error does not rule out, mostly one. Canonical keys decide among them and are what is
// offered; an offer of a row that the list knows, or that waits behind a nearer one, is dropped before its key is
// computed. Where there is no product, or too many pairs are left, all keys of the join are computed.
//
// Bound by the gathers: up to 4 p operands for each row, and the rows of the pairs that are left.
#pragma once

#include "graph/build/nn_descent/join_size.hpp"
#include "graph/build/nn_descent/join_task_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Draws the samples of all lists and marks them OLD; all are kNobody before. In a merge (a boundary that is not 0) OLD
// ones are of the row's own set.
void launch_sample_lists(const DeviceListsRef& lists, const DeviceSamples& samples, int64_t boundary, uint64_t salt,
                         cudaStream_t stream);
// Joins of one size (collect_joins_cuda.hpp).
void launch_join(const JoinTask& task, JoinSize size, cudaStream_t stream);
// The same of a size that is not large, where there are operands.
void launch_small_join(const JoinTask& task, JoinSize size, cudaStream_t stream);

}  // namespace kith
