// What was found of rows on the GPU, as labels and distances. All enqueue and return.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Labels and keys of rows that were searched for by themselves: of rows[i], or of row i where `rows` is null.
void launch_take_found(const uint64_t* found, int64_t count, const uint32_t* rows, int32_t* labels, float* keys,
                       cudaStream_t stream);

// Keys of rows and centres times 2^exponent become, in place, the distances of those as they are, or inner products.
void launch_distances_of_keys(float* keys, int64_t count, bool spherical, int exponent, cudaStream_t stream);

}  // namespace kith
