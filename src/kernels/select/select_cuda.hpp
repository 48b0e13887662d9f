// The k best neighbours of many queries, kept on the GPU while tiles of keys go by.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// A list of k places per query, and the largest key of each full list. An empty list is all padding.
struct DeviceLists {
  uint64_t* neighbors = nullptr;  // queries x k
  uint32_t* bounds = nullptr;
  int64_t queries = 0;
  int64_t k = 0;
};

// A tile of ordered keys, one row for each query, of rows first_row .. first_row + rows - 1 of the base, or of those
// that `numbers` gives in ascending order.
struct DeviceKeyTile {
  const uint32_t* keys = nullptr;
  int64_t stride = 0;
  int64_t rows = 0;
  int64_t first_row = 0;
  const uint32_t* numbers = nullptr;
};

// The lists hold min(rows_seen, k) neighbours in row order, all of rows before the tile's, and afterwards
// min(rows_seen + tile.rows, k). Enqueue and return.
void launch_select(const DeviceLists& lists, const DeviceKeyTile& tile, int64_t rows_seen, cudaStream_t stream);

// Sorts every list, which holds min(rows_seen, k) neighbours.
void launch_sort(const DeviceLists& lists, int64_t rows_seen, cudaStream_t stream);

// Converts tiles of distances to ordered keys (core/ordered_key.hpp) in place. Enqueues and returns.
struct KeyTile {
  uint32_t* keys = nullptr;  // or f32 distances
  int64_t queries = 0;
  int64_t rows = 0;
  int64_t stride = 0;
};

// Converts distances (smaller is nearer) to keys.
void launch_order_keys(const KeyTile& tile, cudaStream_t stream);

}  // namespace kith
