// Small joins of NN-Descent on a GPU (join_size.hpp): a warp for each, which holds all products of the join in its registers.
//
// Operands come straight to the registers from where they lie: which column of a row is which of the product's does not matter, as
// long as it is the same for both operands, so that four neighbouring threads read 64 bytes of a row at once. Nothing waits for
// other warps, and four times as many joins are under way as with a block for each. Late rounds, and all rounds of a merge
// where few are OLD, are small joins; what they cost is a chain of reads (samples, operands, what is known, rows of the
// pairs left), not the products.
#pragma once

#include "graph/nn_descent/join_size.hpp"
#include "graph/nn_descent/join_task_cuda.hpp"

#include <cuda_runtime_api.h>

namespace kith {

// Of one size, which is not large; there are operands. Enqueues.
void launch_small_join(const JoinTask& task, JoinSize size, cudaStream_t stream);

}  // namespace kith
