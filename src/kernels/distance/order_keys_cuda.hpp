// Between tiles of keys that are selected from (core/ordered_key.hpp) and tiles of distances, in place. Enqueue and
// return.
#pragma once

#include <kith/metric.hpp>

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
// Keys become distances in the metric's unit.
void launch_unit_distances(Metric metric, const KeyTile& tile, cudaStream_t stream);

}  // namespace kith
