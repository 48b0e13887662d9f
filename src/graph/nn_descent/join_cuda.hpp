// The kernels of NN-Descent's rounds on a GPU (descent_steps.hpp), on plain arrays in its memory. They enqueue and do not
// wait.
//
// A block joins the samples of one row: it gathers their operands into shared memory, multiplies NEW with NEW and OLD on
// the matrix units, and leaves for each sample the pairs that the product's error does not rule out, mostly one, which is
// offered by its value (waiting_offers_cuda.hpp); an offer of a row that the list knows, or that would wait behind a nearer
// one, is dropped. Canonical keys decide where values do not. Where there is no product, or too many pairs are left, all keys
// of the join are computed.
//
// Bound by the gathers, up to 4 p operands for each row, and by its instructions.
#pragma once

#include "graph/nn_descent/join_task_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Draws the samples of all lists and marks them OLD; `reverse` is cleared before.
void launch_sample_lists(const DeviceListsRef& lists, const DeviceSamples& samples, uint64_t salt, cudaStream_t stream);
void launch_join(const JoinTask& task, cudaStream_t stream);
// After all joins of a round: every offer in the inbox has its key.
void launch_settle_offers(const JoinTask& task, cudaStream_t stream);

}  // namespace kith
