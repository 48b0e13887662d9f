// Products of dense matrices on a GPU, with the bits of dense.hpp: a value is a chain of fused multiply-adds in the
// order of A's columns, cut into the same parts. That rules out the matrix units, whose sums have no such order.
//
// A block of threads has a tile of C in registers; slabs of both operands go through shared memory, the next one on its
// way while one is multiplied. Small matrices have small tiles, so that they fill the machine.
//
// Cost: rows x cols x depth multiply-adds, at half of the device's rate or more for large C.
#pragma once

#include "kernels/dense/dense.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// What the parts of a product's sums take: values of device memory.
int64_t product_part_values(int64_t rows, int64_t cols, int64_t depth, const ProductTerms& terms);

// C = A B, or C += A B. All are in device memory; of each of A and B one step is 1, and C's rows are contiguous.
// `sums`: product_part_values() of them. Enqueue.
void launch_multiply(DenseView<const float> a, DenseView<const float> b, DenseView<float> c, const ProductTerms& terms,
                     float* sums, cudaStream_t stream);
void launch_multiply(DenseView<const float> a, DenseView<const float> b, DenseView<double> c, const ProductTerms& terms,
                     double* sums, cudaStream_t stream);

}  // namespace kith
