// From tiles of distances to keys that are selected from (core/ordered_key.hpp), in place. Enqueues and returns.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct KeyTile {
  uint32_t* keys = nullptr;  // or f32 distances
  int64_t queries = 0;
  int64_t rows = 0;
  int64_t stride = 0;
};

// Distances, the smaller the nearer, become keys.
void launch_order_keys(const KeyTile& tile, cudaStream_t stream);

}  // namespace kith
