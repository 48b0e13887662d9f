// Small joins of NN-Descent on a GPU (join_size.hpp): one or two warps for each.
//
// Operands go straight to registers: which column of a row is which of the product's does not matter while it is the
// same for both operands, so that four neighbouring threads read 64 bytes of a row at once. A warp keeps the products
// of its join in registers (warp_product_cuda.hpp). Those of two warps are in shared memory (small_product_cuda.hpp),
// where a thread has a column and goes over the rows there are. Few wait for each other, and three to four times as
// many joins are under way as with 128 threads for each. Late rounds, and all of a merge where few are OLD, are small
// joins; they cost a chain of reads (samples, operands, what is known, rows of pairs left), no products.
#pragma once

#include "graph/nn_descent/join_size.hpp"
#include "graph/nn_descent/join_task_cuda.hpp"

#include <cuda_runtime_api.h>

namespace kith {

// Of one size, which is not large; there are operands. Enqueues.
void launch_small_join(const JoinTask& task, JoinSize size, cudaStream_t stream);

}  // namespace kith
