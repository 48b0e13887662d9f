// Distances that others have written, turned into keys that are selected from.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// A tile of f32 distances, smaller is nearer, becomes one of ordered keys (core/ordered_key.hpp), in place. Enqueues.
void launch_order_keys(uint32_t* keys, int64_t queries, int64_t rows, int64_t stride, cudaStream_t stream);

}  // namespace kith
