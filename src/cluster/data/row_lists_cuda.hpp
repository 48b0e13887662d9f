// Rows by a list of their numbers on the GPU: gathered one after the other, and what was found of them put back.
// Cost: one read and one write of the rows listed. All enqueue and return.
#pragma once

#include "kernels/distance/distance_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// Rows listed, one after the other.
void launch_gather_rows(const DeviceRowsView& from, int64_t cols, const uint32_t* rows, int64_t count, std::byte* out,
                        cudaStream_t stream);

// The same as f32. Where `rows` is null, rows 0, 1, ...
void launch_gather_floats(const DeviceRowsView& from, int64_t cols, const uint32_t* rows, int64_t count, float* out,
                          cudaStream_t stream);

// Labels and keys of rows that were searched for by themselves: of rows[i], or of row i where `rows` is null.
void launch_take_found(const uint64_t* found, int64_t count, const uint32_t* rows, int32_t* labels, float* keys,
                       cudaStream_t stream);

// Keys of rows and centres times 2^exponent become, in place, the distances of those as they are, or inner products.
void launch_distances_of_keys(float* keys, int64_t count, bool spherical, int exponent, cudaStream_t stream);

}  // namespace kith
