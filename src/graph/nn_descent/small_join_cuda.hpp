// Small joins of NN-Descent on a GPU (join_size.hpp): one or two warps for each.
//
// Operands come straight to the registers from where they lie: which column of a row is which of the product's does not matter, as
// long as it is the same for both operands, so that four neighbouring threads read 64 bytes of a row at once. A warp keeps the
// products of its join in registers (warp_product_cuda.hpp). Those of two warps lie in shared memory (small_product_cuda.hpp),
// where a thread has a column and goes over the rows there are. Few wait for each other, and three to four times as many joins
// are under way as with a block of 128 threads for each. Late rounds, and all rounds of a merge where few are OLD, are small
// joins; what they cost is a chain of reads (samples, operands, what is known, rows of the pairs left), not the products.
#pragma once

#include "graph/nn_descent/join_size.hpp"
#include "graph/nn_descent/join_task_cuda.hpp"

#include <cuda_runtime_api.h>

namespace kith {

// Of one size, which is not large; there are operands. Enqueues.
void launch_small_join(const JoinTask& task, JoinSize size, cudaStream_t stream);

}  // namespace kith
